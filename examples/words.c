/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the words of standard input in an actor (wordcount.lua) and prints the commonest three: waits with poll(2) for
 * standard input and for the daemon at once, and reads on only as fast as the actor counts.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <troupe.h>
#include <unistd.h>

struct words {
        struct troupe *troupe;
        char actor[TROUPE_HANDLE_SIZE];
        char text[65536]; /* what was read and is not sent */
        size_t length;
        int has_ended, is_full, is_done, status;
};

static void complain(struct words *words, int r) {
        const struct troupe_error *error = r == -EREMOTEIO ? troupe_error(words->troupe) : NULL;

        fprintf(stderr, "words: %s\n", error ? error->message : strerror(-r));
        words->is_done = words->status = 1;
}

static void on_counted(struct troupe *troupe, int r, const struct troupe_value *answer, void *userdata) {
        (void)troupe, (void)answer;
        if (r)
                complain(userdata, r);
}

static void on_top(struct troupe *troupe, int r, const struct troupe_value *answer, void *userdata) {
        struct words *words = userdata;
        struct troupe_value pair, word, count;
        struct troupe_walk walk;
        const char *text;
        size_t length;
        int64_t number;

        (void)troupe;
        if (!r)
                r = troupe_walk_begin(&walk, answer);
        while (!r && troupe_walk_next(&walk, NULL, &pair) > 0) {
                if ((r = troupe_value_at(&pair, 0, &word)) || (r = troupe_value_string(&word, &text, &length)) ||
                    (r = troupe_value_at(&pair, 1, &count)) || (r = troupe_value_int(&count, &number)))
                        break;
                printf("%.*s %lld\n", (int)length, text, (long long)number);
        }
        words->is_done = 1;
        if (r)
                complain(words, r);
}

static void on_room(struct troupe *troupe, void *userdata) {
        (void)troupe;
        ((struct words *)userdata)->is_full = 0;
}

/* Asks the actor to count each line that is whole: as many as may be under way. */
static void send_lines(struct words *words) {
        size_t sent = 0;
        int r = 0;

        while (!r && sent < words->length) {
                const char *line = words->text + sent, *end = memchr(line, '\n', words->length - sent);

                if (!end && !words->has_ended && (sent || words->length < sizeof(words->text)))
                        break;
                end = end ? end : words->text + words->length;
                r = troupe_ask_async(words->troupe, words->actor, "line", NULL, on_counted, words, NULL, "S", line,
                                     (size_t)(end - line));
                if (!r)
                        sent = end - words->text + (end < words->text + words->length);
        }
        words->length -= sent;
        memmove(words->text, words->text + sent, words->length);
        if (!r && words->has_ended)
                r = troupe_ask_async(words->troupe, words->actor, "top", NULL, on_top, words, NULL, "i", 3);
        if (r == -ENOBUFS)
                words->is_full = 1;
        else if (r)
                complain(words, r);
        else if (words->has_ended)
                words->is_full = 1; /* nothing is left to send */
}

int main(void) {
        static struct words words;
        int r = troupe_connect(&words.troupe, NULL, 0);

        if (r) {
                fprintf(stderr, "words: no daemon: %s\n", strerror(-r));
                return 1;
        }
        if (!(r = troupe_spawn(words.troupe, "wordcount", NULL, words.actor, NULL)) &&
            !(r = troupe_set_limits(words.troupe, 1000, 0)))
                r = troupe_on_room(words.troupe, on_room, &words);
        if (r)
                complain(&words, r);

        while (!words.is_done) {
                int can_read = !words.is_full && !words.has_ended && words.length < sizeof(words.text);
                struct pollfd fds[] = {
                        { troupe_fd(words.troupe), troupe_events(words.troupe), 0 },
                        { can_read ? STDIN_FILENO : -1, POLLIN, 0 },
                };

                if (poll(fds, 2, troupe_timeout_ms(words.troupe)) < 0 && errno != EINTR)
                        break;
                while ((r = troupe_process(words.troupe, fds[0].revents)) == 1)
                        ;
                if (r < 0 && !words.is_done)
                        complain(&words, r);
                if (fds[1].revents) {
                        ssize_t n = read(STDIN_FILENO, words.text + words.length, sizeof(words.text) - words.length);

                        words.has_ended = n <= 0;
                        words.length += n > 0 ? n : 0;
                }
                if (!words.is_full && !words.is_done)
                        send_lines(&words);
        }
        troupe_free(words.troupe);
        return words.status;
}
