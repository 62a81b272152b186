/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relative references (RFC 3986, 5.2.2), without fragments: those are the caller's. URIs are names here. Nothing is
 * ever fetched, so nothing but what it takes to compare them is done to them.
 */
#include "daemon/contract/uri.h"

#include <ctype.h>
#include <string.h>

struct part {
        const char *text; /* NULL: it is not there, which is not the same as empty */
        size_t len;
};

struct uri {
        struct part scheme, authority, path, query;
};

struct output {
        char *text;
        size_t len;
        bool is_full;
};

static size_t scheme_length(const char *text, size_t len) {
        if (len == 0 || !isalpha((unsigned char)text[0]))
                return 0;
        for (size_t at = 0; at < len; at++) {
                if (text[at] == ':')
                        return at;
                if (!isalnum((unsigned char)text[at]) && !strchr("+-.", text[at]))
                        return 0;
        }
        return 0;
}

static size_t length_until(const char *text, size_t len, const char *ends) {
        size_t at = 0;

        while (at < len && !(text[at] && strchr(ends, text[at])))
                at++;
        return at;
}

static struct uri parse(const char *text, size_t len) {
        struct uri uri = { { NULL } };
        size_t scheme = scheme_length(text, len);

        if (scheme > 0) {
                uri.scheme = (struct part){ text, scheme };
                text += scheme + 1;
                len -= scheme + 1;
        }
        if (len >= 2 && memcmp(text, "//", 2) == 0) {
                uri.authority = (struct part){ text + 2, length_until(text + 2, len - 2, "/?") };
                len -= 2 + uri.authority.len;
                text += 2 + uri.authority.len;
        }
        uri.path = (struct part){ text, length_until(text, len, "?") };
        if (uri.path.len < len)
                uri.query = (struct part){ text + uri.path.len + 1, len - uri.path.len - 1 };
        return uri;
}

static void add(struct output *output, const char *text, size_t len) {
        if (output->is_full || len >= TR_URI_MAX - output->len) {
                output->is_full = true;
                return;
        }
        if (len > 0)
                memcpy(output->text + output->len, text, len);
        output->len += len;
}

static void add_part(struct output *output, const char *before, struct part part, const char *after) {
        if (!part.text)
                return;
        add(output, before, strlen(before));
        add(output, part.text, part.len);
        add(output, after, strlen(after));
}

/* Takes the last segment away, with the slash before it. */
static void drop_segment(struct output *output, size_t begin) {
        while (output->len > begin && output->text[output->len - 1] != '/')
                output->len--;
        if (output->len > begin)
                output->len--;
}

/* Adds a path without segments that are "." and "..". Those of a path that begins with no slash are left as they are:
 * there is nothing that they could be relative to. */
static void add_path(struct output *output, const char *path, size_t len) {
        size_t begin = output->len, at = 0;

        if (len == 0 || path[0] != '/') {
                add(output, path, len);
                return;
        }
        while (at < len) {
                size_t segment = 1 + length_until(path + at + 1, len - at - 1, "/");
                bool is_last = at + segment == len;

                if (segment == 2 && path[at + 1] == '.') {
                        add(output, "/", is_last ? 1 : 0);
                } else if (segment == 3 && memcmp(path + at + 1, "..", 2) == 0) {
                        drop_segment(output, begin);
                        add(output, "/", is_last ? 1 : 0);
                } else {
                        add(output, path + at, segment);
                }
                at += segment;
        }
}

/* The path of a reference that begins with no slash, behind the base's last slash. */
static void add_merged(struct output *output, const struct uri *base, struct part path) {
        char merged[2 * TR_URI_MAX];
        size_t kept = base->path.len;

        while (kept > 0 && base->path.text[kept - 1] != '/')
                kept--;
        if (kept + path.len + 1 > sizeof(merged)) {
                output->is_full = true;
                return;
        }
        if (base->authority.text && base->path.len == 0)
                merged[kept++] = '/';
        else if (kept > 0)
                memcpy(merged, base->path.text, kept);
        memcpy(merged + kept, path.text, path.len);
        add_path(output, merged, kept + path.len);
}

bool tr_uri_resolve(const char *base_text, const char *reference, size_t len, char ret_uri[static TR_URI_MAX]) {
        struct uri base = parse(base_text, strlen(base_text)), uri = parse(reference, len);
        struct output output = { ret_uri, 0, false };
        bool has_own_path = uri.path.len > 0 || uri.authority.text || uri.scheme.text;
        bool is_relative = !uri.scheme.text && !uri.authority.text && uri.path.len > 0 && uri.path.text[0] != '/';

        add_part(&output, "", uri.scheme.text ? uri.scheme : base.scheme, ":");
        add_part(&output, "//", uri.scheme.text || uri.authority.text ? uri.authority : base.authority, "");
        if (is_relative)
                add_merged(&output, &base, uri.path);
        else if (has_own_path)
                add_path(&output, uri.path.text, uri.path.len);
        else
                add(&output, base.path.text, base.path.len);
        add_part(&output, "?", has_own_path || uri.query.text ? uri.query : base.query, "");
        ret_uri[output.is_full ? 0 : output.len] = '\0';
        return !output.is_full;
}
