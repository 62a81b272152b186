/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic that is exact. An integer and a float are compared as integers where both are, since a double does not
 * hold every one of 64 bits. What is a multiple of what is asked of decimals, because that is how people write 0.01,
 * which no double is: a number is `digits` times a power of ten, and the rest is arithmetic modulo the other's
 * digits.
 */
#include "daemon/contract/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INT64_END 9223372036854775808.0   /* 2^63 */
#define UINT64_END 18446744073709551616.0 /* 2^64 */

/* digits * 10^exponent, without its sign. */
struct decimal {
        uint64_t digits;
        int exponent;
};

bool tr_number_is(const struct tr_token *token) {
        return token->type == TR_INT || token->type == TR_UINT || (token->type == TR_FLOAT && isfinite(token->number));
}

bool tr_number_is_integer(const struct tr_token *number) {
        return number->type != TR_FLOAT || trunc(number->number) == number->number;
}

static int sign_of(double number) {
        return (number > 0) - (number < 0);
}

static __int128 integer_of(const struct tr_token *number) {
        return number->type == TR_INT ? (__int128)number->integer : (__int128)number->unsigned_;
}

static int compare_integers(__int128 a, __int128 b) {
        return (a > b) - (a < b);
}

static int compare_with_float(__int128 a, double b) {
        double whole = trunc(b);
        int order;

        if (b >= UINT64_END)
                return -1;
        if (b < -INT64_END)
                return 1;
        order = compare_integers(a, (__int128)whole);
        return order ? order : -sign_of(b - whole);
}

int tr_number_compare(const struct tr_token *a, const struct tr_token *b) {
        if (a->type == TR_FLOAT && b->type == TR_FLOAT)
                return (a->number > b->number) - (a->number < b->number);
        if (a->type == TR_FLOAT)
                return -compare_with_float(integer_of(b), a->number);
        if (b->type == TR_FLOAT)
                return compare_with_float(integer_of(a), b->number);
        return compare_integers(integer_of(a), integer_of(b));
}

/* Reads what tr_float_format() writes of a finite number: "-1.5e-07". */
static struct decimal decimal_of_text(const char *text) {
        struct decimal decimal = { 0 };
        bool in_fraction = false;

        for (; *text && *text != 'e'; text++) {
                if (*text == '.')
                        in_fraction = true;
                if (*text < '0' || *text > '9')
                        continue;
                decimal.digits = decimal.digits * 10 + (uint64_t)(*text - '0');
                decimal.exponent -= in_fraction;
        }
        if (*text == 'e')
                decimal.exponent += atoi(text + 1);
        return decimal;
}

static struct decimal decimal_of(const struct tr_token *number) {
        char text[TR_FLOAT_TEXT_MAX];

        switch (number->type) {
        case TR_INT:
                return (struct decimal){ .digits = number->integer < 0 ? -(uint64_t)number->integer :
                                                                         (uint64_t)number->integer };
        case TR_UINT:
                return (struct decimal){ number->unsigned_, 0 };
        default:
                (void)tr_float_format(number->number, text);
                return decimal_of_text(text);
        }
}

static uint64_t multiply(uint64_t a, uint64_t b, uint64_t modulus) {
        return (uint64_t)((unsigned __int128)a * b % modulus);
}

static uint64_t power_of_ten(unsigned exponent, uint64_t modulus) {
        uint64_t result = 1 % modulus, power = 10 % modulus;

        for (; exponent > 0; exponent /= 2) {
                if (exponent % 2)
                        result = multiply(result, power, modulus);
                power = multiply(power, power, modulus);
        }
        return result;
}

bool tr_number_is_multiple(const struct tr_token *number, const struct tr_token *divisor) {
        struct decimal a = decimal_of(number), b = decimal_of(divisor);
        uint64_t power;

        if (a.digits == 0)
                return true;
        /* What the divisor is more than the number in powers of ten has to be in the number's digits. */
        for (; a.exponent < b.exponent; a.exponent++) {
                if (a.digits % 10)
                        return false;
                a.digits /= 10;
        }
        power = power_of_ten((unsigned)(a.exponent - b.exponent), b.digits);
        return multiply(a.digits % b.digits, power, b.digits) == 0;
}

void tr_number_write(struct tr_writer *writer, const struct tr_token *number) {
        if (number->type == TR_INT)
                tr_write_int(writer, number->integer);
        else if (number->type == TR_UINT)
                tr_write_uint(writer, number->unsigned_);
        else if (!tr_number_is_integer(number) || number->number >= UINT64_END || number->number < -INT64_END)
                tr_write_float(writer, number->number);
        else if (number->number >= INT64_END)
                tr_write_uint(writer, (uint64_t)number->number);
        else
                tr_write_int(writer, (int64_t)number->number);
}

size_t tr_number_format(const struct tr_token *number, char text[static TR_NUMBER_TEXT_MAX]) {
        if (number->type == TR_FLOAT)
                return tr_float_format(number->number, text);
        if (number->type == TR_INT)
                return (size_t)snprintf(text, TR_NUMBER_TEXT_MAX, "%" PRId64, number->integer);
        return (size_t)snprintf(text, TR_NUMBER_TEXT_MAX, "%" PRIu64, number->unsigned_);
}
