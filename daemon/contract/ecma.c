/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From ECMA-262's regular expressions (with the flag u) to PCRE2's. Both read most alike. What they read differently is
 * written as what ECMA-262 means: the dot, \s, \v, \u, the numbers of groups, [ in a class, long names of categories.
 * What only PCRE2 reads (verbs, recursion, conditions, possessive repeats, \Q, \K, ...) is refused.
 *
 * Whether the whole has sense is for PCRE2 to say; here it is only read from the left to the right.
 */
#include "daemon/contract/ecma.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct reading {
        struct tr_writer *out;
        const char *at;
        const char *end;
        bool in_class;
};

static void put(struct reading *reading, const char *text) {
        tr_write_raw(reading->out, text, strlen(text));
}

static void put_code_point(struct reading *reading, unsigned long code_point) {
        char text[24];

        snprintf(text, sizeof(text), "\\x{%lx}", code_point);
        put(reading, text);
}

static bool next_is(const struct reading *reading, const char *text) {
        size_t len = strlen(text);

        return (size_t)(reading->end - reading->at) >= len && memcmp(reading->at, text, len) == 0;
}

static bool take(struct reading *reading, const char *text) {
        if (!next_is(reading, text))
                return false;
        reading->at += strlen(text);
        return true;
}

/* Takes hexadecimal digits: at least `least`, at most `most`. */
static bool take_hex(struct reading *reading, int least, int most, unsigned long *ret_value) {
        unsigned long value = 0;
        int count = 0;

        for (; count < most && reading->at < reading->end && isxdigit((unsigned char)*reading->at); count++) {
                char digit = *reading->at++;

                value = value * 16 + (unsigned long)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
        }
        *ret_value = value;
        return count >= least;
}

/* Behind \u: four digits, or any number in braces; two surrogates in a row are one character. */
static const char *read_unicode(struct reading *reading) {
        unsigned long high, low;

        if (take(reading, "{")) {
                if (!take_hex(reading, 1, 8, &high) || !take(reading, "}") || high > 0x10ffff)
                        return "\\u{ is followed by no character's number";
        } else if (!take_hex(reading, 4, 4, &high)) {
                return "\\u is not followed by four hexadecimal digits";
        } else if (high >= 0xd800 && high < 0xdc00 && take(reading, "\\u")) {
                if (!take_hex(reading, 4, 4, &low) || low < 0xdc00 || low > 0xdfff)
                        return "half of a surrogate pair is missing";
                high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        }
        put_code_point(reading, high);
        return NULL;
}

/* The general categories, long and short. */
static const char *const categories[][2] = {
        { "Cased_Letter", "L&" },
        { "Close_Punctuation", "Pe" },
        { "Connector_Punctuation", "Pc" },
        { "Control", "Cc" },
        { "cntrl", "Cc" },
        { "Currency_Symbol", "Sc" },
        { "Dash_Punctuation", "Pd" },
        { "Decimal_Number", "Nd" },
        { "digit", "Nd" },
        { "Enclosing_Mark", "Me" },
        { "Final_Punctuation", "Pf" },
        { "Format", "Cf" },
        { "Initial_Punctuation", "Pi" },
        { "LC", "L&" },
        { "Letter", "L" },
        { "Letter_Number", "Nl" },
        { "Line_Separator", "Zl" },
        { "Lowercase_Letter", "Ll" },
        { "Mark", "M" },
        { "Combining_Mark", "M" },
        { "Math_Symbol", "Sm" },
        { "Modifier_Letter", "Lm" },
        { "Modifier_Symbol", "Sk" },
        { "Nonspacing_Mark", "Mn" },
        { "Number", "N" },
        { "Open_Punctuation", "Ps" },
        { "Other", "C" },
        { "Other_Letter", "Lo" },
        { "Other_Number", "No" },
        { "Other_Punctuation", "Po" },
        { "Other_Symbol", "So" },
        { "Paragraph_Separator", "Zp" },
        { "Private_Use", "Co" },
        { "Punctuation", "P" },
        { "punct", "P" },
        { "Separator", "Z" },
        { "Space_Separator", "Zs" },
        { "Spacing_Mark", "Mc" },
        { "Surrogate", "Cs" },
        { "Symbol", "S" },
        { "Titlecase_Letter", "Lt" },
        { "Unassigned", "Cn" },
        { "Uppercase_Letter", "Lu" },
};

static void put_property(struct reading *reading, const char *name, size_t len) {
        for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++)
                if (strlen(categories[i][0]) == len && memcmp(categories[i][0], name, len) == 0) {
                        put(reading, categories[i][1]);
                        return;
                }
        tr_write_raw(reading->out, name, len);
}

/* Behind \p and \P. */
static const char *read_property(struct reading *reading, char kind) {
        static const char *const category_of[] = { "General_Category=", "gc=" };
        const char *close;

        if (!take(reading, "{") || !(close = memchr(reading->at, '}', (size_t)(reading->end - reading->at))))
                return "\\p is not followed by a property in braces";
        for (size_t i = 0; i < 2; i++)
                if (take(reading, category_of[i]))
                        break;
        for (const char *at = reading->at; at < close; at++)
                if (!isalnum((unsigned char)*at) && *at != '_' && *at != '=')
                        return "\\p is followed by no property's name";
        put(reading, kind == 'p' ? "\\p{" : "\\P{");
        put_property(reading, reading->at, (size_t)(close - reading->at));
        put(reading, "}");
        reading->at = close + 1;
        return NULL;
}

/* Behind a backslash: the number of a group, of which \g{} leaves no doubt. */
static const char *read_group(struct reading *reading) {
        size_t digits = 0;

        while (reading->at + digits < reading->end && isdigit((unsigned char)reading->at[digits]))
                digits++;
        if (reading->in_class || digits > 5)
                return "a digit follows on a backslash";
        put(reading, "\\g{");
        tr_write_raw(reading->out, reading->at, digits);
        put(reading, "}");
        reading->at += digits;
        return NULL;
}

static const char *read_group_name(struct reading *reading) {
        const char *close = memchr(reading->at, '>', (size_t)(reading->end - reading->at));

        if (reading->in_class || !next_is(reading, "<") || !close)
                return "\\k is not followed by the name of a group";
        put(reading, "\\k");
        tr_write_raw(reading->out, reading->at, (size_t)(close - reading->at) + 1);
        reading->at = close + 1;
        return NULL;
}

#define SPACES "\\t-\\r\\x20\\x{a0}\\x{feff}\\x{2028}\\x{2029}\\p{Zs}"

static const char *read_spaces(struct reading *reading, char kind) {
        if (kind == 's')
                put(reading, reading->in_class ? SPACES : "[" SPACES "]");
        else
                /* In a class: what ASCII has for spaces. A class has no difference of sets. */
                put(reading, reading->in_class ? "\\S" : "[^" SPACES "]");
        return NULL;
}

static const char *read_letter_escape(struct reading *reading, char letter) {
        const char same[3] = { '\\', letter, '\0' };
        unsigned long value;

        switch (letter) {
        case 'b':
        case 'd':
        case 'D':
        case 'f':
        case 'n':
        case 'r':
        case 't':
        case 'w':
        case 'W':
                put(reading, same);
                return NULL;
        case 'B':
                put(reading, same);
                return reading->in_class ? "\\B stands in a class" : NULL;
        case 'v':
                put_code_point(reading, 0x0b);
                return NULL;
        case 's':
        case 'S':
                return read_spaces(reading, letter);
        case 'c':
                if (reading->at == reading->end || !isalpha((unsigned char)*reading->at))
                        return "\\c is not followed by a letter";
                put_code_point(reading, (unsigned long)*reading->at++ % 32);
                return NULL;
        case 'x':
                if (!take_hex(reading, 2, 2, &value))
                        return "\\x is not followed by two hexadecimal digits";
                put_code_point(reading, value);
                return NULL;
        case 'u':
                return read_unicode(reading);
        case 'p':
        case 'P':
                return read_property(reading, letter);
        case 'k':
                return read_group_name(reading);
        default:
                return "a letter follows on a backslash that has no meaning there";
        }
}

/* Behind a backslash. */
static const char *read_escape(struct reading *reading) {
        char next;

        if (reading->at == reading->end)
                return "it ends in a backslash";
        next = *reading->at;
        if (next >= '1' && next <= '9')
                return read_group(reading);
        reading->at++;
        if (isalpha((unsigned char)next))
                return read_letter_escape(reading, next);
        if (next == '0') {
                put_code_point(reading, 0);
                return reading->at < reading->end && isdigit((unsigned char)*reading->at) ? "a digit follows on \\0"
                                                                                          : NULL;
        }
        if ((unsigned char)next >= 0x80 || next == '_')
                return "a character follows on a backslash that has no meaning there";
        tr_write_raw(reading->out, "\\", 1);
        tr_write_raw(reading->out, &next, 1);
        return NULL;
}

/* Behind the bracket that opens a class, up to the one that closes it. */
static const char *read_class(struct reading *reading) {
        const char *problem = NULL;

        put(reading, take(reading, "^") ? "[^" : "[");
        reading->in_class = true;
        while (!problem && reading->at < reading->end && *reading->at != ']') {
                char next = *reading->at++;

                if (next == '\\')
                        problem = read_escape(reading);
                else if (next == '[')
                        put(reading, "\\[");
                else
                        tr_write_raw(reading->out, &next, 1);
        }
        reading->in_class = false;
        if (!problem && !take(reading, "]"))
                problem = "a class is not closed";
        put(reading, "]");
        return problem;
}

/* Behind a parenthesis that opens. */
static const char *read_open(struct reading *reading) {
        static const char *const kinds[] = { "?:", "?=", "?!", "?<=", "?<!" };

        put(reading, "(");
        if (next_is(reading, "*"))
                return "there is nothing to repeat";
        if (!next_is(reading, "?"))
                return NULL;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (take(reading, kinds[i])) {
                        put(reading, kinds[i]);
                        return NULL;
                }
        if (!take(reading, "?<") || reading->at == reading->end || isdigit((unsigned char)*reading->at))
                return "(? is followed by what has no meaning there";
        put(reading, "?<");
        return NULL;
}

/* Takes how often something is repeated: its first character has been read. */
static const char *read_repeat(struct reading *reading, char first) {
        tr_write_raw(reading->out, &first, 1);
        if (first == '{') {
                size_t len = 0, left = (size_t)(reading->end - reading->at);

                while (len < left && (isdigit((unsigned char)reading->at[len]) || reading->at[len] == ','))
                        len++;
                if (len == 0 || len == left || reading->at[len] != '}' || reading->at[0] == ',')
                        return "{ opens no count";
                tr_write_raw(reading->out, reading->at, len + 1);
                reading->at += len + 1;
        }
        if (take(reading, "?"))
                put(reading, "?");
        if (reading->at < reading->end && strchr("*+?{", *reading->at))
                return "there is nothing to repeat";
        return NULL;
}

static const char *read_one(struct reading *reading) {
        char next = *reading->at++;

        switch (next) {
        case '\\':
                return read_escape(reading);
        case '[':
                return read_class(reading);
        case '(':
                return read_open(reading);
        case '*':
        case '+':
        case '?':
        case '{':
                return read_repeat(reading, next);
        case '.':
                put(reading, "[^\\n\\r\\x{2028}\\x{2029}]");
                return NULL;
        default:
                tr_write_raw(reading->out, &next, 1);
                return NULL;
        }
}

const char *tr_ecma_translate(struct tr_writer *writer, const char *text, size_t len) {
        struct reading reading = { writer, text, text + len, false };
        const char *problem = NULL;

        while (!problem && reading.at < reading.end)
                problem = read_one(&reading);
        return problem;
}
