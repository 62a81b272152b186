/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/peer.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void peer_init(struct peer *peer, int backlog) {
        *peer = (struct peer){ .fd = -1 };
        strcpy(peer->directory, "/tmp/troupe-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(peer->directory));
        snprintf(peer->path, sizeof(peer->path), "%s/sock", peer->directory);
        peer_listen(peer, backlog);
}

void peer_listen(struct peer *peer, int backlog) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        strcpy(address.sun_path, peer->path);
        peer->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(peer->listen_fd, 0);
        ck_assert_int_eq(bind(peer->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(peer->listen_fd, backlog), 0);
}

void peer_unlisten(struct peer *peer) {
        if (peer->listen_fd >= 0)
                close(peer->listen_fd);
        peer->listen_fd = -1;
        unlink(peer->path);
}

void peer_deinit(struct peer *peer) {
        peer_close(peer);
        peer_unlisten(peer);
        rmdir(peer->directory);
        free(peer->received);
}

struct troupe *peer_connect(struct peer *peer, unsigned int flags, const char *limits) {
        struct troupe *troupe = NULL;
        char *result;

        ck_assert_int_eq(troupe_connect(&troupe, peer->path, flags), 0);
        ck_assert_ptr_nonnull(troupe);
        peer_accept(peer);
        if (limits) {
                ck_assert_int_gt(asprintf(&result, "{\"server\":\"peer\",\"limits\":%s}", limits), 0);
                peer_answer(peer, 0, "null", result);
                free(result);
        }
        return troupe;
}

void peer_accept(struct peer *peer) {
        peer->fd = accept4(peer->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        ck_assert_int_ge(peer->fd, 0);
}

void peer_close(struct peer *peer) {
        if (peer->fd >= 0)
                close(peer->fd);
        peer->fd = -1;
}

void peer_write(struct peer *peer, const void *data, size_t bytes) {
        ck_assert_int_eq(send(peer->fd, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

void peer_answer(struct peer *peer, uint32_t id, const char *error, const char *result) {
        struct troupe_value frame;

        ck_assert_int_eq(troupe_pack(&frame, "[iljj]", 1, (int64_t)id, error, result), 0);
        peer_write(peer, frame.data, frame.size);
        troupe_value_free(&frame);
}

void peer_notify(struct peer *peer, const char *method, const char *params) {
        struct troupe_value frame;

        ck_assert_int_eq(troupe_pack(&frame, "[isj]", 2, method, params), 0);
        peer_write(peer, frame.data, frame.size);
        troupe_value_free(&frame);
}

void peer_request(struct peer *peer, uint32_t id, const char *method, const char *params) {
        struct troupe_value frame;

        ck_assert_int_eq(troupe_pack(&frame, "[ilsj]", 0, (int64_t)id, method, params), 0);
        peer_write(peer, frame.data, frame.size);
        troupe_value_free(&frame);
}

static void receive(struct peer *peer) {
        char piece[65536];
        ssize_t n;

        while ((n = recv(peer->fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0) {
                peer->received = realloc(peer->received, peer->received_bytes + n);
                ck_assert_ptr_nonnull(peer->received);
                memcpy(peer->received + peer->received_bytes, piece, n);
                peer->received_bytes += n;
        }
}

static char *lines_of(struct peer *peer, bool with_hello) {
        struct troupe_walk all;
        struct troupe_value frame;
        char *heard = NULL, *text;
        size_t bytes;
        FILE *lines;

        lines = open_memstream(&heard, &bytes);
        ck_assert_ptr_nonnull(lines);
        all = (struct troupe_walk){ peer->received, peer->received + peer->received_bytes, SIZE_MAX, 0 };
        while (all.at != all.end && troupe_walk_next(&all, NULL, &frame) > 0) {
                ck_assert_int_eq(troupe_value_json(&frame, &text, NULL), 0);
                if (with_hello || !strstr(text, "\"hello\",[{\"protocol\""))
                        fprintf(lines, "%s\n", text);
                free(text);
        }
        fclose(lines);
        peer->received_bytes = 0;
        return heard;
}

char *peer_heard(struct peer *peer) {
        receive(peer);
        return lines_of(peer, false);
}

char *peer_heard_all(struct peer *peer) {
        struct pollfd poll_fd = { peer->fd, POLLIN, 0 };

        ck_assert_int_eq(poll(&poll_fd, 1, -1), 1);
        receive(peer);
        return lines_of(peer, true);
}
