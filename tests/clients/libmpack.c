/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives libmpack's RPC session (see stock.py). The library reads and writes the heads of frames, and finds where values end; the
 * values themselves are passed on as they are.
 */
#include <err.h>
#include <mpack.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
        BUFFER_MAX = 4 << 20,
        KEPT_MAX = 16
};

struct bytes {
        size_t size;
        char data[BUFFER_MAX];
};

/* What has come from the daemon: `at` is up to where it has been read. */
static struct {
        int fd;
        size_t at;
        struct bytes bytes;
} input;

/* What the daemon has called while a response was waited for. */
static struct {
        unsigned count, taken;
        struct {
                size_t size;
                char *data;
        } calls[KEPT_MAX];
} kept;

static mpack_rpc_session_t session;
static struct bytes command, output, reply;

static void append(struct bytes *to, const char *data, size_t size) {
        if (size > BUFFER_MAX - to->size)
                errx(1, "too much");
        memcpy(to->data + to->size, data, size);
        to->size += size;
}

static void read_more(void) {
        struct bytes *bytes = &input.bytes;

        if (bytes->size == BUFFER_MAX)
                errx(1, "too much");
        ssize_t n = read(input.fd, bytes->data + bytes->size, BUFFER_MAX - bytes->size);
        if (n <= 0)
                errx(1, "the daemon closed the connection");
        bytes->size += (size_t)n;
}

static void write_all(const struct bytes *from) {
        for (size_t done = 0; done < from->size;) {
                ssize_t n = write(input.fd, from->data + done, from->size - done);
                if (n < 0)
                        err(1, "write");
                done += (size_t)n;
        }
}

static void visit(mpack_parser_t *parser, mpack_node_t *node) {
        (void)parser;
        (void)node;
}

/* The size of the value at `data`; 0 where it does not end within `size`. */
static size_t value_size(const char *data, size_t size) {
        mpack_parser_t parser;
        const char *at = data;

        mpack_parser_init(&parser, MPACK_MAX_OBJECT_DEPTH);
        switch (mpack_parse(&parser, &at, &size, visit, visit)) {
        case MPACK_OK:
                return (size_t)(at - data);
        case MPACK_EOF:
                return 0;
        default:
                errx(1, "not MessagePack");
        }
}

/* Copies the daemon's next value to the reply. */
static void take_value(void) {
        size_t size;

        while (input.at == input.bytes.size ||
               !(size = value_size(input.bytes.data + input.at, input.bytes.size - input.at)))
                read_more();
        append(&reply, input.bytes.data + input.at, size);
        input.at += size;
}

/* Reads the head of the daemon's next frame. Answers what it is. */
static int take_head(mpack_rpc_message_t *ret_message) {
        if (input.at == input.bytes.size)
                input.at = input.bytes.size = 0;
        for (;;) {
                if (input.at == input.bytes.size)
                        read_more();
                const char *at = input.bytes.data + input.at;
                size_t left = input.bytes.size - input.at;
                int kind = mpack_rpc_receive(&session, &at, &left, ret_message);

                input.at = (size_t)(at - input.bytes.data);
                if (kind != MPACK_EOF)
                        return kind;
        }
}

static void put_string(const char *text) {
        char head = (char)(0xa0 | strlen(text));

        append(&reply, &head, 1);
        append(&reply, text, strlen(text));
}

static void begin_reply(unsigned items, const char *what) {
        char head = (char)(0x90 | items);

        reply.size = 0;
        append(&reply, &head, 1);
        put_string(what);
}

/* Sends a frame: what the session has written of its head, and the rest. */
static void send_frame(const char *head, size_t head_size, const char *rest, size_t rest_size) {
        output.size = 0;
        append(&output, head, head_size);
        append(&output, rest, rest_size);
        write_all(&output);
}

static void send_call(bool is_request, const char *rest, size_t size) {
        char head[32], *at = head;
        size_t left = sizeof(head);
        mpack_data_t data = { .p = NULL };
        int sent = is_request ? mpack_rpc_request(&session, &at, &left, data) : mpack_rpc_notify(&session, &at, &left);

        if (sent != MPACK_OK)
                errx(1, "libmpack cannot send: %d", sent);
        send_frame(head, (size_t)(at - head), rest, size);
}

/* Answers a request with its params. */
static void send_response(mpack_uint32_t id, const char *params, size_t size) {
        char head[32], *at = head;
        size_t left = sizeof(head) - 1;

        if (mpack_rpc_reply(&session, &at, &left, id) != MPACK_OK)
                errx(1, "libmpack cannot reply");
        *at++ = (char)0xc0;
        send_frame(head, (size_t)(at - head), params, size);
}

/* Reads the rest of a request or a notification into the reply, and answers the request. */
static void take_call(int kind, const mpack_rpc_message_t *message) {
        if (kind != MPACK_RPC_REQUEST && kind != MPACK_RPC_NOTIFICATION)
                errx(1, "neither a request nor a notification: %d", kind);
        begin_reply(3, kind == MPACK_RPC_REQUEST ? "request" : "notification");
        take_value();
        size_t params_at = reply.size;
        take_value();
        if (kind == MPACK_RPC_REQUEST)
                send_response(message->id, reply.data + params_at, reply.size - params_at);
}

/* Keeps the reply for later: what came while a response was waited for. */
static void keep_call(void) {
        if (kept.count == KEPT_MAX)
                errx(1, "too much");
        char *copy = malloc(reply.size);
        if (!copy)
                err(1, "malloc");
        memcpy(copy, reply.data, reply.size);
        kept.calls[kept.count].data = copy;
        kept.calls[kept.count++].size = reply.size;
}

static void do_request(const char *rest, size_t size) {
        mpack_rpc_message_t message;
        int kind;

        send_call(true, rest, size);
        while ((kind = take_head(&message)) != MPACK_RPC_RESPONSE) {
                take_call(kind, &message);
                keep_call();
        }
        begin_reply(2, "error");
        size_t error_at = reply.size;
        take_value();
        bool is_error = reply.data[error_at] != (char)0xc0;
        if (!is_error)
                begin_reply(2, "result");
        size_t end = reply.size;
        take_value();
        if (is_error)
                reply.size = end;
}

static void do_next(void) {
        mpack_rpc_message_t message;

        if (kept.taken < kept.count) {
                reply.size = 0;
                append(&reply, kept.calls[kept.taken].data, kept.calls[kept.taken].size);
                free(kept.calls[kept.taken++].data);
        } else {
                int kind = take_head(&message);
                take_call(kind, &message);
        }
}

static void do_command(void) {
        /* [OPERATION, METHOD, PARAMS]: one byte for the array, and one for the length of a short string. */
        const char *operation = command.data + 2;
        size_t length = command.data[1] & 0x1f;
        const char *rest = operation + length;
        size_t size = command.size - 2 - length;

        if (!strncmp(operation, "request", length)) {
                do_request(rest, size);
        } else if (!strncmp(operation, "notify", length)) {
                send_call(false, rest, size);
                begin_reply(1, "sent");
        } else {
                do_next();
        }
}

/* Reads a line of hexadecimal digits. */
static bool read_command(void) {
        char digits[3] = "";
        int c;

        for (command.size = 0; (c = getchar()) != '\n' && c != EOF;) {
                digits[0] = (char)c;
                digits[1] = (char)getchar();
                char byte = (char)strtoul(digits, NULL, 16);
                append(&command, &byte, 1);
        }
        return c != EOF;
}

int main(int argc, char **argv) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path))
                errx(2, "usage: libmpack SOCKET");
        strcpy(address.sun_path, argv[1]);
        input.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (input.fd < 0 || connect(input.fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                err(1, "%s", argv[1]);

        mpack_rpc_session_init(&session, 0);
        while (read_command()) {
                do_command();
                for (size_t i = 0; i < reply.size; i++)
                        printf("%02x", (unsigned char)reply.data[i]);
                putchar('\n');
                fflush(stdout);
        }
        return 0;
}
