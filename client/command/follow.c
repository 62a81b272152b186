/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following. Each line goes out at once, also into a pipe, since whoever reads may wait for that one line. There is no
 * end but an interrupt, the daemon's, or that nobody reads any more.
 */
#include "client/command/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/command/command.h"
#include "client/command/interrupt.h"
#include "client/command/link.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "proto/utf8.h"

struct follower {
        struct tr_invocation *invocation;
        bool says_topic;
        tr_follow_print *print;
        int status; /* why no more can be printed; 0: it can */
};

/* Text for eyes; a further line of it is indented. */
static void put_text(const char *text, size_t len) {
        for (size_t i = 0; i < len;) {
                size_t bytes = tr_utf8_character(text + i, len - i);

                if (text[i] == '\n')
                        fputs("\n    ", stdout);
                else if (bytes > 0 && (text[i] == '\t' || !tr_utf8_is_control(text + i, bytes)))
                        fwrite(text + i, 1, bytes, stdout);
                else
                        printf("\\x%02x", (unsigned char)text[i]);
                /* of a control character of two bytes the second is none by itself, and comes here next */
                i += bytes > 0 && !tr_utf8_is_control(text + i, bytes) ? bytes : 1;
        }
}

static bool find_text(const struct troupe_value *event, const char *key, const char **ret_text, size_t *ret_len) {
        struct troupe_value value;

        return !troupe_value_get(event, key, &value) && !troupe_value_string(&value, ret_text, ret_len);
}

static bool find_number(const struct troupe_value *event, const char *key, int64_t *ret_number) {
        struct troupe_value value;

        return !troupe_value_get(event, key, &value) && !troupe_value_int(&value, ret_number);
}

void tr_follow_put_time(const struct troupe_value *event, const char *key) {
        struct tm utc = { 0 }, here;
        char text[64] = "", time[16];
        unsigned int ms = 0;
        const char *data, *decimals;
        size_t len;
        time_t seconds;

        if (find_text(event, key, &data, &len) && len < sizeof(text))
                memcpy(text, data, len);
        decimals = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
        if (!decimals)
                return;
        if (*decimals == '.')
                for (int i = 1, worth = 100; worth > 0 && decimals[i] >= '0' && decimals[i] <= '9'; i++, worth /= 10)
                        ms += (unsigned int)(decimals[i] - '0') * (unsigned int)worth;
        seconds = timegm(&utc);
        localtime_r(&seconds, &here);
        strftime(time, sizeof(time), "%H:%M:%S", &here);
        printf("%s.%03u ", time, ms);
}

bool tr_follow_put(const struct troupe_value *event, const char *key, const char *before, const char *behind) {
        const char *text;
        size_t len;

        if (!find_text(event, key, &text, &len))
                return false;
        fputs(before ? before : "", stdout);
        put_text(text, len);
        fputs(behind ? behind : "", stdout);
        return true;
}

bool tr_follow_put_actor(const struct troupe_value *event, const char *key, const char *behind) {
        bool has_name = tr_follow_put(event, key, NULL, NULL);
        bool has_handle = tr_follow_put(event, "handle", "[", "]");

        if (has_name || has_handle)
                fputs(behind ? behind : "", stdout);
        return has_name || has_handle;
}

void tr_follow_put_client(const struct troupe_value *map, const char *uid_key, const char *pid_key) {
        int64_t uid, pid;

        if (!find_number(map, uid_key, &uid))
                return;
        if (find_number(map, pid_key, &pid))
                printf(" (uid %" PRId64 ", pid %" PRId64 ")", uid, pid);
        else
                printf(" (uid %" PRId64 ")", uid);
}

static void put_ms(const struct troupe_value *span, const char *key, const char *what) {
        struct troupe_value value;
        double ms;

        if (!troupe_value_get(span, key, &value) && !troupe_value_float(&value, &ms))
                printf(", %.3f ms %s", ms, what);
}

void tr_follow_put_span(const struct troupe_value *span) {
        struct troupe_value caller;
        int64_t attempt;

        (void)tr_follow_put(span, "component", NULL, NULL);
        (void)tr_follow_put(span, "operation", ".", NULL);
        (void)tr_follow_put(span, "instance", "[", "]");
        (void)tr_follow_put(span, "outcome", ": ", NULL);
        (void)tr_follow_put(span, "message", ": ", NULL);
        put_ms(span, "queued", "queued");
        put_ms(span, "run", "run");
        if (find_number(span, "attempt", &attempt) && attempt > 1)
                printf(", attempt %" PRId64, attempt);
        if (!troupe_value_get(span, "caller", &caller))
                tr_follow_put_client(&caller, "uid", "pid");
}

void tr_follow_put_line(const struct troupe_value *event) {
        (void)tr_follow_put(event, "level", NULL, ": ");
        (void)tr_follow_put_actor(event, "actor", ": ");
        (void)tr_follow_put(event, "message", NULL, NULL);
        tr_follow_put_client(event, "peer_uid", "peer_pid");
        (void)tr_follow_put(event, "trace", " (trace ", ")");
}

static int put_json(const struct follower *follower, const char *topic, const struct troupe_value *event) {
        char *json;
        int r = troupe_value_json(event, &json, NULL);

        if (r)
                return tr_report_errno(follower->invocation, r);
        if (follower->says_topic && json[0] == '{')
                printf("{\"topic\":\"%s\"%s%s\n", topic, json[1] == '}' ? "" : ",", json + 1);
        else
                puts(json);
        free(json);
        return 0;
}

static int put_line(const struct follower *follower, const char *topic, const struct troupe_value *event) {
        int64_t dropped;

        follower->print(topic, event);
        putchar('\n');
        if (find_number(event, "dropped", &dropped))
                printf("    (%" PRId64 " before this were left out)\n", dropped);
        return 0;
}

static void on_event(struct troupe *troupe, const char *topic, const struct troupe_value *event, void *userdata) {
        struct follower *follower = userdata;

        if (follower->status)
                return;
        follower->status =
                follower->invocation->json ? put_json(follower, topic, event) : put_line(follower, topic, event);
        if (!follower->status)
                follower->status = tr_show_end(follower->invocation);
}

static int subscribe(struct follower *follower, const char *topic) {
        struct troupe *troupe = follower->invocation->troupe;
        struct tr_reply reply = { 0 };
        int r = troupe_subscribe_async(troupe, topic, NULL, on_event, follower, tr_link_on_reply, &reply,
                                       &reply.pending);
        int status = tr_link_wait(follower->invocation, r, &reply);

        tr_reply_deinit(&reply);
        return status;
}

static int follow(struct follower *follower) {
        struct tr_problem problem = { 0 };
        enum tr_step step = TR_STEP_DONE;
        int status;

        while (!follower->status && step == TR_STEP_DONE)
                step = tr_link_step(follower->invocation, NULL, -1);
        if (follower->status)
                return follower->status;
        if (step == TR_STEP_INTERRUPTED)
                return tr_interrupt_exit();
        tr_problem_set(&problem, follower->invocation->troupe, -ENOTCONN);
        status = tr_problem_report(&problem, follower->invocation, 0);
        tr_problem_deinit(&problem);
        return status;
}

int tr_follow(struct tr_invocation *invocation, const char *const *topics, bool says_topic, tr_follow_print *print) {
        struct follower follower = { .invocation = invocation, .says_topic = says_topic, .print = print };
        int status = tr_link_open(invocation);

        for (; !status && *topics; topics++)
                status = subscribe(&follower, *topics);
        if (!status)
                status = follow(&follower);
        /* what it is told of must not come when the follower is gone */
        tr_link_close(invocation);
        return status;
}
