/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, every key, every kind of mistake with its line and key. */
#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/core/pool.h"
#include "daemon/io/peer.h"
#include "daemon/settings/settings.h"
#include "tests/unit/failing.h"
#include "tests/unit/suite.h"

static char folder[64];
static char file[96];
static struct tr_problems problems, notes;

static void write_file(const char *text) {
        FILE *stream = fopen(file, "w");

        ck_assert_ptr_nonnull(stream);
        fputs(text, stream);
        ck_assert_int_eq(fclose(stream), 0);
}

static void set_up(void) {
        snprintf(folder, sizeof(folder), "/tmp/test_settings.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        snprintf(file, sizeof(file), "%s/trouped.json", folder);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
        return remove(path);
}

static void tear_down(void) {
        tr_problems_deinit(&problems);
        tr_problems_deinit(&notes);
        nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static struct tr_settings *load(const char *text) {
        struct tr_settings *settings = NULL;
        int r;

        write_file(text);
        r = tr_settings_load(file, TR_SETTINGS_SYSTEM, &problems, &notes, &settings);
        if (r == TR_SETTINGS_WRONG) {
                char *problem = tr_problem_text(&problems.list[0]);

                ck_abort_msg("%s", problem);
        }
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(problems.count, 0);
        return settings;
}

/* What is said, file left out, lines joined by breaks. */
static void assert_said(const struct tr_problems *said, const char *expected) {
        char all[4096] = "";

        for (size_t i = 0; i < said->count; i++) {
                char *text = tr_problem_text(&said->list[i]);

                ck_assert_uint_gt(strlen(text), strlen(file));
                ck_assert_int_eq(strncmp(text, file, strlen(file)), 0);
                strncat(all, text + strlen(file), sizeof(all) - strlen(all) - 1);
                strncat(all, "\n", sizeof(all) - strlen(all) - 1);
                free(text);
        }
        ck_assert_str_eq(all, expected);
}

static void assert_wrong(const char *text, const char *expected) {
        struct tr_settings *settings = NULL;

        write_file(text);
        ck_assert_int_eq(tr_settings_load(file, TR_SETTINGS_SYSTEM, &problems, &notes, &settings), TR_SETTINGS_WRONG);
        ck_assert_ptr_null(settings);
        assert_said(&problems, expected);
        tr_problems_deinit(&problems);
        tr_problems_deinit(&notes);
}

static void assert_defaults(const struct tr_settings *settings) {
        ck_assert_str_eq(settings->socket_path, "/run/troupe/troupe.sock");
        ck_assert_uint_eq(settings->socket_mode, 0660);
        ck_assert_str_eq(settings->socket_group, "troupe");
        ck_assert_str_eq(settings->store_path, "/var/lib/troupe/troupe.db");
        ck_assert_str_eq(settings->path[0], "/etc/troupe/lua");
        ck_assert_str_eq(settings->path[1], "/usr/local/share/troupe/lua");
        ck_assert_str_eq(settings->path[2], "/usr/share/troupe/lua");
        ck_assert_ptr_null(settings->path[3]);
        ck_assert_uint_eq(settings->allow, 1 << TR_SETTINGS_ALLOW_FILES);
        ck_assert_uint_eq(settings->actors.count, 0);
        ck_assert_uint_eq(settings->limits.actors, 1024);
        ck_assert_uint_eq(settings->limits.actors_per_user, 512);
        ck_assert_uint_eq(settings->limits.connections, 4096);
        ck_assert_uint_eq(settings->limits.connections_per_user, 1024);
        ck_assert_uint_eq(settings->limits.requests, 65536);
        ck_assert_uint_eq(settings->limits.frame_bytes, 16 << 20);
        ck_assert_uint_eq(settings->limits.output_bytes, 64 << 20);
        ck_assert_uint_eq(settings->limits.stalled_ms, 30000);
        ck_assert_uint_eq(settings->limits.heap_bytes, 64 << 20);
        ck_assert_uint_eq(settings->limits.heap_max_bytes, 1 << 30);
        ck_assert_uint_eq(settings->limits.mailbox, 65536);
        ck_assert_uint_eq(settings->limits.mailbox_bytes, 64 << 20);
        ck_assert_uint_eq(settings->limits.async, 1024);
        ck_assert_uint_eq(settings->limits.nesting, 128);
        ck_assert_uint_eq(settings->limits.queue, 65536);
        ck_assert_uint_eq(settings->limits.slow_ms, 5000);
        ck_assert_uint_eq(settings->limits.memory_bytes, 0);
        ck_assert_uint_eq(settings->log_level, TR_LOG_INFO);
        ck_assert_uint_eq(settings->log_format, TR_LOG_AUTO);
        ck_assert_uint_eq(settings->grace_ms, 10000);
}

START_TEST(every_key_has_its_default) {
        struct tr_settings *settings;

        settings = load("{}");
        assert_defaults(settings);
        ck_assert_str_eq(settings->file, file);
        ck_assert_int_eq(settings->socket_group_line, 0);
        ck_assert(!settings->has_allow);
        ck_assert(!settings->has_log_level);
        ck_assert(!settings->has_log_format);
        tr_settings_free(settings);

        ck_assert_int_eq(tr_settings_new(TR_SETTINGS_SYSTEM, &problems, &settings), 0);
        assert_defaults(settings);
        ck_assert_ptr_null(settings->file);
        tr_settings_free(settings);
}
END_TEST

START_TEST(the_defaults_are_a_configuration) {
        struct tr_settings *settings = load(tr_settings_defaults);

        assert_defaults(settings);
        ck_assert_uint_eq(notes.count, 0);
        ck_assert_int_eq(settings->socket_group_line, 2);
        ck_assert(settings->has_allow);
        tr_settings_free(settings);
}
END_TEST

START_TEST(every_key_is_read) {
        struct tr_settings *settings = load(
                "{\"socket\": {\"path\": \"/s/t.sock\", \"mode\": \"666\", \"group\": \"staff\"},\n"
                " \"path\": [\"/a\"], \"allow\": [\"native\", \"commands\"],\n"
                " \"limits\": {\"actors\": 1, \"actors_per_user\": 2, \"connections\": 3, \"connections_per_user\": "
                "4,\n"
                "   \"requests\": 5, \"frame\": 65536, \"output\": \"1M\", \"stalled\": \"2m\", \"heap\": \"1M\",\n"
                "   \"heap_max\": \"2G\", \"mailbox\": 6, \"mailbox_bytes\": \"7K\", \"async\": 8, \"nesting\": 12,\n"
                "   \"queue\": 9, \"slow\": 250, \"memory\": \"10G\"},\n"
                " \"log\": {\"level\": \"debug\", \"format\": \"json\"}, \"shutdown\": {\"grace\": \"1h\"},\n"
                " \"store\": {\n"
                "   \"path\": \"/s/t.db\"}}");

        ck_assert_str_eq(settings->store_path, "/s/t.db");
        ck_assert_int_eq(settings->store_path_line, 9);
        ck_assert_str_eq(settings->socket_path, "/s/t.sock");
        ck_assert_uint_eq(settings->socket_mode, 0666);
        ck_assert_str_eq(settings->socket_group, "staff");
        ck_assert_int_eq(settings->socket_group_line, 1);
        ck_assert_str_eq(settings->path[0], "/a");
        ck_assert_ptr_null(settings->path[1]);
        ck_assert_uint_eq(settings->allow, 1 << TR_SETTINGS_ALLOW_NATIVE | 1 << TR_SETTINGS_ALLOW_COMMANDS);
        ck_assert_uint_eq(settings->limits.actors, 1);
        ck_assert_uint_eq(settings->limits.actors_per_user, 2);
        ck_assert_uint_eq(settings->limits.connections, 3);
        ck_assert_uint_eq(settings->limits.connections_per_user, 4);
        ck_assert_uint_eq(settings->limits.requests, 5);
        ck_assert_uint_eq(settings->limits.frame_bytes, 65536);
        ck_assert_uint_eq(settings->limits.output_bytes, 1 << 20);
        ck_assert_uint_eq(settings->limits.stalled_ms, 120000);
        ck_assert_uint_eq(settings->limits.heap_bytes, 1 << 20);
        ck_assert_uint_eq(settings->limits.heap_max_bytes, UINT64_C(2) << 30);
        ck_assert_uint_eq(settings->limits.mailbox, 6);
        ck_assert_uint_eq(settings->limits.mailbox_bytes, 7 << 10);
        ck_assert_uint_eq(settings->limits.async, 8);
        ck_assert_uint_eq(settings->limits.nesting, 12);
        ck_assert_uint_eq(settings->limits.queue, 9);
        ck_assert_uint_eq(settings->limits.slow_ms, 250);
        ck_assert_uint_eq(settings->limits.memory_bytes, UINT64_C(10) << 30);
        ck_assert_uint_eq(settings->log_level, TR_LOG_DEBUG);
        ck_assert_uint_eq(settings->log_format, TR_LOG_JSON);
        ck_assert(settings->has_log_level);
        ck_assert(settings->has_log_format);
        ck_assert_uint_eq(settings->grace_ms, 3600000);
        tr_settings_free(settings);
        ck_assert_uint_eq(notes.count, 0);
}
END_TEST

START_TEST(pools_are_read) {
        static const uint8_t args[] = { 0x01, 0xa1, 'x' };
        struct tr_settings *settings =
                load("{\"pools\": [{\"name\": \"p\", \"actor\": \"a:B\", \"args\": [1, \"x\"], \"workers\": 8,\n"
                     "  \"routing\": \"shared\", \"queue\": 5, \"heap\": \"1M\", \"mailbox\": 3, \"mailbox_bytes\": 4,\n"
                     "  \"async\": 2, \"backoff\": {\"min\": 1, \"max\": \"1s\", \"reset\": \"1m\"}, \"publish\": \"q\"},\n"
                     " {\"name\": \"r\", \"actor\": \"c\"}]}");
        const struct tr_settings_pool *first = &settings->pools.list[0], *second = &settings->pools.list[1];

        ck_assert_uint_eq(settings->pools.count, 2);
        ck_assert_str_eq(first->name, "p");
        ck_assert_str_eq(first->actor, "a:B");
        ck_assert_str_eq(first->publish, "q");
        ck_assert_uint_eq(first->args.count, 2);
        ck_assert_uint_eq(first->args.bytes, sizeof(args));
        ck_assert_mem_eq(first->args.data, args, sizeof(args));
        ck_assert_uint_eq(first->workers, 8);
        ck_assert_uint_eq(first->routing, TR_ROUTING_SHARED);
        ck_assert_uint_eq(first->queue, 5);
        ck_assert_uint_eq(first->heap_bytes, 1 << 20);
        ck_assert_uint_eq(first->mailbox, 3);
        ck_assert_uint_eq(first->mailbox_bytes, 4);
        ck_assert_uint_eq(first->async, 2);
        ck_assert_uint_eq(first->backoff_min_ms, 1);
        ck_assert_uint_eq(first->backoff_max_ms, 1000);
        ck_assert_uint_eq(first->backoff_reset_ms, 60000);
        ck_assert_str_eq(second->name, "r");
        ck_assert_uint_eq(second->routing, TR_ROUTING_ROUND_ROBIN);
        ck_assert_uint_eq(second->workers + second->queue + second->backoff_min_ms, 0);
        ck_assert_int_eq(second->line, 4);
        tr_settings_free(settings);
}
END_TEST

START_TEST(access_is_read) {
        struct tr_settings *settings =
                load("{\"access\": [{\"user\": \"media\", \"roles\": [\"call\", \"serve\"], \"names\": [\"media.*\", \"a\"]},\n"
                     "  {\"group\": \"12\", \"roles\": [\"operate\", \"spawn\"]},\n"
                     "  {\"user\": \"u\", \"roles\": [], \"names\": []}]}");
        const struct tr_settings_rule *rules = settings->access.list;

        ck_assert_uint_eq(settings->access.count, 3);
        ck_assert_str_eq(rules[0].user, "media");
        ck_assert_ptr_null(rules[0].group);
        ck_assert_uint_eq(rules[0].roles, TR_ROLE_CALL | TR_ROLE_SERVE);
        ck_assert_str_eq(rules[0].names[0], "media.*");
        ck_assert_str_eq(rules[0].names[1], "a");
        ck_assert_ptr_null(rules[0].names[2]);
        ck_assert_int_eq(rules[0].line, 1);
        ck_assert_ptr_null(rules[1].user);
        ck_assert_str_eq(rules[1].group, "12");
        ck_assert_uint_eq(rules[1].roles, TR_ROLE_OPERATE | TR_ROLE_SPAWN);
        ck_assert_ptr_null(rules[1].names);
        ck_assert_int_eq(rules[1].line, 2);
        ck_assert_uint_eq(rules[2].roles, 0);
        ck_assert_ptr_nonnull(rules[2].names);
        ck_assert_ptr_null(rules[2].names[0]);
        ck_assert_uint_eq(notes.count, 0);
        tr_settings_free(settings);
}
END_TEST

START_TEST(actors_are_read) {
        struct tr_settings *settings =
                load("{\"actors\": [\n"
                     " {\"actor\": \"counter\"},\n"
                     " {\"actor\": \"shop.till:Till\", \"args\": [1, -2.5, \"a\\u0000b\", null, true, [{\"k\": []}]],\n"
                     "  \"name\": \"the till\", \"publish\": \"shop.till\", \"heap\": \"1M\", \"mailbox\": 5,\n"
                     "  \"mailbox_bytes\": \"1K\", \"async\": 7, \"restart\": \"always\"}]}");
        const struct tr_settings_actor *first = &settings->actors.list[0], *second = &settings->actors.list[1];
        static const uint8_t args[] = {
                0x01, 0xcb, 0xc0, 0x04, 0, 0, 0, 0, 0, 0, 0xa3, 'a', 0, 'b', 0xc0, 0xc3, 0x91, 0x81, 0xa1, 'k', 0x90,
        };

        ck_assert_uint_eq(settings->actors.count, 2);
        ck_assert_str_eq(first->actor, "counter");
        ck_assert_ptr_null(first->name);
        ck_assert_ptr_null(first->publish);
        ck_assert_uint_eq(first->heap_bytes + first->mailbox + first->mailbox_bytes + first->async, 0);
        ck_assert_uint_eq(first->restart, TR_RESTART_ON_FAULT);
        ck_assert_uint_eq(first->args.count, 0);
        ck_assert_int_eq(first->line, 2);
        ck_assert_str_eq(second->actor, "shop.till:Till");
        ck_assert_str_eq(second->name, "the till");
        ck_assert_str_eq(second->publish, "shop.till");
        ck_assert_uint_eq(second->heap_bytes, 1 << 20);
        ck_assert_uint_eq(second->mailbox, 5);
        ck_assert_uint_eq(second->mailbox_bytes, 1024);
        ck_assert_uint_eq(second->async, 7);
        ck_assert_uint_eq(second->restart, TR_RESTART_ALWAYS);
        ck_assert_int_eq(second->line, 3);
        ck_assert_uint_eq(second->args.count, 6);
        ck_assert_uint_eq(second->args.bytes, sizeof(args));
        ck_assert_mem_eq(second->args.data, args, sizeof(args));
        tr_settings_free(settings);
}
END_TEST

START_TEST(relative_paths_start_at_the_files_folder) {
        struct tr_settings *settings =
                load("{\"socket\": {\"path\": \"t.sock\"}, \"path\": [\"lua\", \"/b\", \"../c\"]}");
        char expected[PATH_MAX];

        snprintf(expected, sizeof(expected), "%s/t.sock", folder);
        ck_assert_str_eq(settings->socket_path, expected);
        snprintf(expected, sizeof(expected), "%s/lua", folder);
        ck_assert_str_eq(settings->path[0], expected);
        ck_assert_str_eq(settings->path[1], "/b");
        snprintf(expected, sizeof(expected), "%s/../c", folder);
        ck_assert_str_eq(settings->path[2], expected);
        tr_settings_free(settings);

        /* also where the file itself is named by a relative path */
        ck_assert_int_eq(chdir(folder), 0);
        ck_assert_int_eq(tr_settings_load("trouped.json", TR_SETTINGS_SYSTEM, &problems, &notes, &settings), 0);
        snprintf(expected, sizeof(expected), "%s/lua", folder);
        ck_assert_str_eq(settings->path[0], expected);
        tr_settings_free(settings);
}
END_TEST

START_TEST(a_users_own_places) {
        struct tr_settings *settings;
        char expected[PATH_MAX];

        setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
        setenv("XDG_DATA_HOME", "/data", 1);
        setenv("XDG_STATE_HOME", "/state", 1);
        setenv("XDG_CONFIG_HOME", folder, 1);
        ck_assert_int_eq(tr_settings_load(NULL, TR_SETTINGS_USER, &problems, &notes, &settings), 0);
        ck_assert_ptr_null(settings->file);
        ck_assert_str_eq(settings->socket_path, "/run/user/7/troupe/troupe.sock");
        ck_assert_uint_eq(settings->socket_mode, 0600);
        ck_assert_ptr_null(settings->socket_group);
        ck_assert_str_eq(settings->store_path, "/state/troupe/troupe.db");
        ck_assert_int_eq(settings->store_path_line, 0);
        ck_assert_str_eq(settings->path[0], "/data/troupe/lua");
        ck_assert_str_eq(settings->path[1], "/etc/troupe/lua");
        ck_assert_str_eq(settings->path[3], "/usr/share/troupe/lua");
        ck_assert_ptr_null(settings->path[4]);
        tr_settings_free(settings);

        unsetenv("XDG_RUNTIME_DIR");
        setenv("XDG_DATA_HOME", "relative", 1);
        unsetenv("XDG_STATE_HOME");
        setenv("HOME", "/home/h", 1);
        ck_assert_int_eq(tr_settings_new(TR_SETTINGS_USER, &problems, &settings), 0);
        snprintf(expected, sizeof(expected), "/run/user/%u/troupe/troupe.sock", getuid());
        ck_assert_str_eq(settings->socket_path, expected);
        ck_assert_str_eq(settings->path[0], "/home/h/.local/share/troupe/lua");
        ck_assert_str_eq(settings->store_path, "/home/h/.local/state/troupe/troupe.db");
        tr_settings_free(settings);
}
END_TEST

START_TEST(a_users_own_file_is_found) {
        struct tr_settings *settings;
        char directory[96], own[128];

        snprintf(directory, sizeof(directory), "%s/troupe", folder);
        snprintf(own, sizeof(own), "%s/trouped.json", directory);
        ck_assert_int_eq(mkdir(directory, 0700), 0);
        write_file("{\"limits\": {\"actors\": 7}}");
        ck_assert_int_eq(rename(file, own), 0);
        setenv("XDG_CONFIG_HOME", folder, 1);
        ck_assert_int_eq(tr_settings_load(NULL, TR_SETTINGS_USER, &problems, &notes, &settings), 0);
        ck_assert_str_eq(settings->file, own);
        ck_assert_uint_eq(settings->limits.actors, 7);
        tr_settings_free(settings);
        unlink(own);
        rmdir(directory);
}
END_TEST

START_TEST(a_file_that_was_named_must_be_there) {
        struct tr_settings *settings;

        ck_assert_int_eq(tr_settings_load(file, TR_SETTINGS_SYSTEM, &problems, &notes, &settings), TR_SETTINGS_WRONG);
        assert_said(&problems, ": No such file or directory\n");
        tr_problems_deinit(&problems);
        ck_assert_int_eq(mkdir(file, 0700), 0);
        ck_assert_int_eq(tr_settings_load(file, TR_SETTINGS_SYSTEM, &problems, &notes, &settings), TR_SETTINGS_WRONG);
        assert_said(&problems, ": is no regular file\n");
        rmdir(file);
}
END_TEST

/* text, and all that is said of it */
static const char *const mistakes[][2] = {
        /* not JSON */
        { "", ":1: '[' or '{' expected near end of file\n" },
        { "{\n\"path\": [}\n", ":2: unexpected token near '}'\n" },
        { "{\n\n\"log\": {}, \"log\": {}}", ":3: duplicate object key near '\"log\"'\n" },
        { "{} x", ":1: end of file expected near 'x'\n" },
        { "[]", ":1: must be an object\n" },
        /* keys */
        { "{\n\"colour\": 1}", ":2: colour: unknown key\n" },
        { "{\"limits\": {\n \"heep\": 1}}", ":2: limits.heep: unknown key\n" },
        { "{\"socket\": {\"x\": 1}}", ":1: socket.x: unknown key\n" },
        { "{\"store\": {\"x\": 1}}", ":1: store.x: unknown key\n" },
        { "{\"log\": {\"x\": 1}}", ":1: log.x: unknown key\n" },
        { "{\"trace\": {\"x\": 1}}", ":1: trace.x: unknown key\n" },
        { "{\"metrics\": {\"x\": 1}}", ":1: metrics.x: unknown key\n" },
        { "{\"shutdown\": {\"x\": 1}}", ":1: shutdown.x: unknown key\n" },
        { "{\"actors\": [{\"actor\": \"a\"},\n{\"actor\": \"a\", \"args\": [],\n\"x\": 1}]}",
          ":3: actors[1].x: unknown key\n" },
        { "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\", \"x\": 1}]}", ":1: pools[0].x: unknown key\n" },
        { "{\"access\": [{\"user\": \"u\", \"roles\": [],\n\"x\": 1}]}", ":2: access[0].x: unknown key\n" },
        /* all of them are told, in the file's order */
        { "{\"a\": 1,\n\"limits\": {\"heap\": true,\n\"frame\": -1},\n\"b\": 1}",
          ":1: a: unknown key\n"
          ":2: limits.heap: must be a size: bytes, or text with K, M or G (\"64M\")\n"
          ":3: limits.frame: must be a size: bytes, or text with K, M or G (\"64M\")\n"
          ":4: b: unknown key\n" },
        /* kinds */
        { "{\"limits\": 5}", ":1: limits: must be an object\n" },
        { "{\"limits\": null}", ":1: limits: must be an object\n" },
        { "{\"limits\": {\"actors\": 0}}", ":1: limits.actors: must be a whole number from 1 to 1000000\n" },
        { "{\"limits\": {\"actors\": -1}}", ":1: limits.actors: must be a whole number from 1 to 1000000\n" },
        { "{\"limits\": {\"actors\": 1.5}}", ":1: limits.actors: must be a whole number from 1 to 1000000\n" },
        { "{\"limits\": {\"actors\": \"10\"}}", ":1: limits.actors: must be a whole number from 1 to 1000000\n" },
        { "{\"limits\": {\"actors\": null}}", ":1: limits.actors: must be a whole number from 1 to 1000000\n" },
        { "{\"limits\": {\"nesting\": 129}}", ":1: limits.nesting: must be a whole number from 1 to 128\n" },
        { "{\"limits\": {\"mailbox\": 4294967296}}",
          ":1: limits.mailbox: must be a whole number from 1 to 4294967295\n" },
        { "{\"limits\": {\"frame\": \"16 M\"}}",
          ":1: limits.frame: must be a size: bytes, or text with K, M or G (\"64M\")\n" },
        { "{\"limits\": {\"frame\": \"4G\"}}", ":1: limits.frame: must be a size from 64 to 4294967295 bytes\n" },
        { "{\"limits\": {\"stalled\": \"30\\u0000s\"}}",
          ":1: limits.stalled: must be a time: milliseconds, or text with ms, s, m, h or d (\"10s\")\n" },
        { "{\"shutdown\": {\"grace\": 0}}", ":1: shutdown.grace: must be a time from 1 to 31536000000 milliseconds\n" },
        { "{\"shutdown\": {\"grace\": \"366d\"}}",
          ":1: shutdown.grace: must be a time from 1 to 31536000000 milliseconds\n" },
        { "{\"limits\": {\"memory\": 0}}", ":1: limits.memory: must be a size from 1 to 9223372036854775807 bytes\n" },
        { "{\"socket\": {\"mode\": 660}}", ":1: socket.mode: must be permissions as octal text (\"0660\")\n" },
        { "{\"socket\": {\"mode\": \"0668\"}}", ":1: socket.mode: must be permissions as octal text (\"0660\")\n" },
        { "{\"socket\": {\"mode\": \"1660\"}}", ":1: socket.mode: must be permissions as octal text (\"0660\")\n" },
        { "{\"socket\": {\"mode\": \"66\"}}", ":1: socket.mode: must be permissions as octal text (\"0660\")\n" },
        { "{\"socket\": {\"group\": \"\"}}", ":1: socket.group: must be text of 1 to 256 bytes\n" },
        { "{\"socket\": {\"path\": \"\"}}", ":1: socket.path: must be a path\n" },
        { "{\"socket\": {\"path\": \"a\\u0000b\"}}", ":1: socket.path: must be a path\n" },
        { "{\"path\": \"/a\"}", ":1: path: must be a list of paths\n" },
        { "{\"path\": [\"/a\",\n3]}", ":2: path[1]: must be a path\n" },
        { "{\"allow\": \"files\"}", ":1: allow: must be a list\n" },
        { "{\"allow\": [\"files\",\n\"all\"]}", ":2: allow[1]: must be one of: files, commands, native\n" },
        { "{\"log\": {\"level\": \"warn\"}}", ":1: log.level: must be one of: error, warning, info, debug\n" },
        { "{\"log\": {\"format\": 1}}", ":1: log.format: must be one of: auto, text, json, journal\n" },
        /* actors */
        { "{\"actors\": {}}", ":1: actors: must be a list\n" },
        { "{\"actors\": [\n7]}", ":2: actors[0]: must be an object\n" },
        { "{\"actors\": [\n{}]}", ":2: actors[0].actor: is missing\n" },
        { "{\"actors\": [{\"actor\": \"a/b\"}]}",
          ":1: actors[0].actor: must be an actor: \"module:Name\" or \"module\"\n" },
        { "{\"actors\": [{\"actor\": \"a\", \"args\": {}}]}", ":1: actors[0].args: must be a list\n" },
        { "{\"actors\": [{\"actor\": \"a\", \"name\": \"\"}]}",
          ":1: actors[0].name: must be text of 1 to 128 bytes\n" },
        { "{\"actors\": [{\"actor\": \"a\", \"publish\": \".a\"}]}",
          ":1: actors[0].publish: must be a name: letters, digits, _ and -, in parts joined by dots\n" },
        { "{\"actors\": [{\"actor\": \"a\", \"heap\": \"1K\"}]}",
          ":1: actors[0].heap: must be a size from 65536 to 9223372036854775807 bytes\n" },
        { "{\"actors\": [{\"actor\": \"a\", \"mailbox\": 0}]}",
          ":1: actors[0].mailbox: must be a whole number from 1 to 4294967295\n" },
        { "{\"actors\": [{\"actor\": \"a\", \"restart\": \"maybe\"}]}",
          ":1: actors[0].restart: must be one of: never, on-fault, always\n" },
        { "{\"actors\": [{\"actor\": \"a\", \"publish\": \"n\"},\n{\"actor\": \"b\"},\n{\"actor\": "
          "\"c\",\n\"publish\": \"n\"}]}",
          ":4: actors[2].publish: is the name of actors[0] already\n" },
        /* keys that have to agree */
        { "{\"limits\": {\"heap\": \"2M\",\n\"heap_max\": \"1M\"}}", ":1: limits.heap: is above limits.heap_max\n" },
        { "{\"limits\": {\"heap_max\": \"1M\"}}", ":1: limits.heap: is above limits.heap_max\n" },
        { "{\"actors\": [{\"actor\": \"a\",\n\"heap\": \"2G\"}]}", ":2: actors[0].heap: is above limits.heap_max\n" },
        /* features to come: their form is checked */
        { "{\"pools\": [{\"name\": \"p\"}]}", ":1: pools[0].actor: is missing\n" },
        { "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\"}, {\"name\": \"q\", \"publish\": \"p\", \"actor\": \"a\"}]}",
          ":1: pools[1].publish: is the name of pools[0] already\n" },
        { "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\", \"backoff\": {\"min\": 2, \"max\": 1}}]}",
          ":1: pools[0].backoff: has a max that is less than its min\n" },
        { "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\", \"workers\": 0}]}",
          ":1: pools[0].workers: must be a whole number from 1 to 1024\n" },
        { "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\", \"routing\": \"x\"}]}",
          ":1: pools[0].routing: must be one of: round-robin, smallest-mailbox, random, shared\n" },
        { "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\", \"backoff\": {\"min\": -1}}]}",
          ":1: pools[0].backoff.min: must be a time: milliseconds, or text with ms, s, m, h or d (\"10s\")\n" },
        { "{\"pools\": [{\"name\": \"p\", \"actor\": \"a\", \"detach\": 1}]}",
          ":1: pools[0].detach: must be true or false\n" },
        { "{\"components\": \"x\"}", ":1: components: must be a list\n" },
        { "{\"components\": [\"components.d\",\n1]}", ":2: components[1]: must be a folder, a file, or a manifest\n" },
        { "{\"access\": [{\"roles\": []}]}", ":1: access[0]: must have either a user or a group\n" },
        { "{\"access\": [{\"user\": \"u\", \"group\": \"g\", \"roles\": []}]}",
          ":1: access[0]: must have either a user or a group\n" },
        { "{\"access\": [{\"user\": \"u\"}]}", ":1: access[0].roles: is missing\n" },
        { "{\"access\": [{\"user\": \"u\", \"roles\": [\"root\"]}]}",
          ":1: access[0].roles[0]: must be one of: call, serve, spawn, operate\n" },
        { "{\"access\": [{\"user\": \"u\", \"roles\": [], \"names\": [\"a*b\"]}]}",
          ":1: access[0].names[0]: must be a name, or the beginning of names and *\n" },
        { "{\"store\": {\"path\": null}}", ":1: store.path: must be a path\n" },
        { "{\"trace\": {\"file\": 1}}", ":1: trace.file: must be a path\n" },
        { "{\"metrics\": {\"mode\": \"9\"}}", ":1: metrics.mode: must be permissions as octal text (\"0660\")\n" },
};

START_TEST(a_mistake_has_its_line_and_key) {
        assert_wrong(mistakes[_i][0], mistakes[_i][1]);
}
END_TEST

START_TEST(nesting_of_arguments_is_bounded) {
        char text[512], deep[130] = "";

        for (int levels = 128; levels <= 129; levels++) {
                memset(deep, '[', (size_t)levels);
                deep[levels] = '\0';
                snprintf(text, sizeof(text), "{\"actors\": [{\"actor\": \"a\", \"args\": [1, %s", deep);
                memset(deep, ']', (size_t)levels);
                strcat(text, deep);
                strcat(text, "]}]}");
                if (levels == 128)
                        tr_settings_free(load(text));
                else
                        assert_wrong(text, ":1: actors[0].args[1]: is nested deeper than 128 levels\n");
        }
}
END_TEST

START_TEST(what_asks_for_nothing_is_not_told) {
        tr_settings_free(load("{\"pools\": [], \"components\": [], \"access\": [], \"trace\": {\"file\": null},\n"
                              " \"metrics\": {\"path\": null, \"mode\": \"0660\"}, \"limits\": {\"queue\": 65536}}"));
        ck_assert_uint_eq(notes.count, 0);
}
END_TEST

START_TEST(what_is_not_built_yet_is_told) {
        tr_settings_free(load(
                "{\"pools\": [{\"name\": \"p\", \"actor\": \"a:B\", \"args\": [1], \"workers\": 8,\n"
                "  \"routing\": \"shared\", \"queue\": 5, \"heap\": \"1M\", \"mailbox\": 1, \"mailbox_bytes\": 1,\n"
                "  \"async\": 1, \"backoff\": {\"min\": 1, \"max\": \"1s\", \"reset\": \"1m\"}, \"detach\": true,\n"
                "  \"publish\": \"q\"}],\n"
                " \"components\": [\"components.d\"],\n"
                " \"access\": [{\"user\": \"media\", \"roles\": [\"call\", \"serve\"],\n"
                "   \"names\": [\"media.*\", \"*\", \"a.b\"]}, {\"group\": \"g\", \"roles\": [\"operate\", "
                "\"spawn\"]}],\n"
                " \"store\": {\"path\": \"x.db\"}, \"trace\": {\"file\": \"t\"},\n"
                " \"metrics\": {\"path\": \"m\",\n"
                "   \"mode\": \"0600\", \"group\": \"g\"}, \"limits\": {\"queue\": 5}}"));
        assert_said(&notes, ":9: metrics.path: without effect in this version\n"
                            ":10: metrics.mode: without effect in this version\n"
                            ":10: metrics.group: without effect in this version\n");
}
END_TEST

/* Components */

static void write_beside(const char *name, const char *text) {
        char path[PATH_MAX];
        FILE *stream;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        stream = fopen(path, "w");
        ck_assert_ptr_nonnull(stream);
        fputs(text, stream);
        ck_assert_int_eq(fclose(stream), 0);
}

static void make_folder(const char *name) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        ck_assert_int_eq(mkdir(path, 0700), 0);
}

#define COMPONENT(name) "{\"name\": \"" name "\", \"operations\": {\"o\": {}}}"

static void assert_component(const struct tr_settings *settings, size_t index, const char *name, const char *from) {
        char expected[PATH_MAX];

        snprintf(expected, sizeof(expected), "%s/%s", folder, from);
        ck_assert_uint_gt(settings->components.count, index);
        ck_assert_str_eq(settings->components.list[index].manifest->name, name);
        ck_assert_str_eq(settings->components.list[index].file, expected);
}

START_TEST(components_are_folders_files_and_manifests) {
        struct tr_settings *settings;

        make_folder("more");
        write_beside("more/b.json", COMPONENT("two"));
        write_beside("more/a.json", COMPONENT("one"));
        write_beside("more/README", "no manifest");
        write_beside("more/.hidden.json", "none either");
        write_beside("alone", COMPONENT("three"));
        settings = load("{\"components\": [\"more\", " COMPONENT("four") ", \"alone\"]}");
        ck_assert_uint_eq(settings->components.count, 4);
        assert_component(settings, 0, "one", "more/a.json");
        assert_component(settings, 1, "two", "more/b.json");
        assert_component(settings, 2, "four", "trouped.json");
        assert_component(settings, 3, "three", "alone");
        tr_settings_free(settings);
        ck_assert_uint_eq(notes.count, 0);

        /* a program that is run has none, and does not look */
        ck_assert_int_eq(tr_settings_load(file, TR_SETTINGS_PROGRAM, &problems, &notes, &settings), 0);
        ck_assert_uint_eq(settings->components.count, 0);
        tr_settings_free(settings);
}
END_TEST

START_TEST(the_default_folder_is_beside_the_file) {
        struct tr_settings *settings = load("{}");

        ck_assert_uint_eq(settings->components.count, 0);
        tr_settings_free(settings);
        make_folder("components.d");
        write_beside("components.d/a.json", COMPONENT("a"));
        settings = load("{}");
        ck_assert_uint_eq(settings->components.count, 1);
        assert_component(settings, 0, "a", "components.d/a.json");
        tr_settings_free(settings);
        settings = load("{\"components\": []}");
        ck_assert_uint_eq(settings->components.count, 0);
        tr_settings_free(settings);
}
END_TEST

START_TEST(components_need_no_configuration) {
        struct tr_settings *settings;

        make_folder("troupe");
        make_folder("troupe/components.d");
        write_beside("troupe/components.d/a.json", COMPONENT("a"));
        setenv("XDG_CONFIG_HOME", folder, 1);
        ck_assert_int_eq(tr_settings_load(NULL, TR_SETTINGS_USER, &problems, &notes, &settings), 0);
        ck_assert_ptr_null(settings->file);
        assert_component(settings, 0, "a", "troupe/components.d/a.json");
        tr_settings_free(settings);
}
END_TEST

/* Each problem begins with this file of the folder and goes on with this text. */
static void assert_problem(size_t index, const char *from, const char *expected) {
        char whole[PATH_MAX + 256];
        char *text;

        ck_assert_uint_gt(problems.count, index);
        text = tr_problem_text(&problems.list[index]);
        snprintf(whole, sizeof(whole), "%s/%s%s", folder, from, expected);
        ck_assert_str_eq(text, whole);
        free(text);
}

START_TEST(what_is_wrong_with_a_component_is_told_with_its_place) {
        struct tr_settings *settings = NULL;
        char expected[PATH_MAX];

        make_folder("more");
        write_beside("more/a.json", "{\"name\": \"a\",\n\"operations\": {\"o\": {\"errors\": [\"E\",\n\"not a name\"]}}}");
        write_beside("more/b.json", "{\"name\": \"b\",\n\"operations\": {}, \"heap\": \"1G\"}");
        write_beside("more/c.json", "{\"name\": \"c\",\n\"name\": \"d\"}");
        write_beside("more/d.json", COMPONENT("d"));
        write_beside("more/e.json", "{\"operations\": {\"o\": {}},\n\"name\": \"d\"}");
        write_beside("more/f.json", "{\"name\": \"f\", \"operations\": {\"o\": {}},\n\n\"heap\": \"1G\"}");
        make_folder("more/g.json");
        write_file("{\"limits\": {\"heap\": \"1M\", \"heap_max\": \"1M\"}, \"colour\": 1,\n"
                   "\"components\": [\"more\",\n {\"name\": \"x\", \"operations\": {\"o/p\":\n{}}},\n"
                   COMPONENT("d") ",\n\"none\"]}");
        ck_assert_int_eq(tr_settings_load(file, TR_SETTINGS_SYSTEM, &problems, &notes, &settings), TR_SETTINGS_WRONG);
        assert_problem(0, "trouped.json", ":1: colour: unknown key");
        assert_problem(1, "trouped.json", ":3: components[1]/operations/o~1p: is no name: letters, digits, _ and -, in "
                                          "parts joined by dots");
        assert_problem(2, "more/a.json", ":3: /operations/o/errors/1: must be a name: letters, digits, _ and -, in parts "
                                         "joined by dots");
        assert_problem(3, "more/b.json", ":2: /operations: must have 1 to 4096 operations");
        assert_problem(4, "more/c.json", ":2: duplicate object key near '\"name\"'");
        snprintf(expected, sizeof(expected), ":2: /name: is the name of the component in %s/more/d.json already", folder);
        assert_problem(5, "more/e.json", expected);
        assert_problem(6, "more/f.json", ":3: /heap: is above limits.heap_max");
        assert_problem(7, "more/g.json", ": is no regular file");
        snprintf(expected, sizeof(expected), ":5: components[2]/name: is the name of the component in %s/more/d.json already",
                 folder);
        assert_problem(8, "trouped.json", expected);
        snprintf(expected, sizeof(expected), ":6: components[3]: %s/none: No such file or directory", folder);
        assert_problem(9, "trouped.json", expected);
        ck_assert_uint_eq(problems.count, 10);
}
END_TEST

START_TEST(want_of_memory_is_an_error_and_nothing_else) {
        long after = 0;
        int r;

        make_folder("components.d");
        write_beside("components.d/a.json", COMPONENT("one"));
        write_file("{\"components\": [\"components.d\", " COMPONENT("two") "],\n"
                   "\"path\": [\"a\", \"/b\"], \"actors\": [{\"actor\": \"a:B\", \"args\": [1, [2]], \"publish\": "
                   "\"p\"}],\n"
                   " \"access\": [{\"user\": \"u\", \"roles\": [], \"names\": [\"a\", \"b.*\"]}], \"limits\": {\"queue\": 1}}");
        setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
        tr_log_set_level(TR_LOG_ERROR);
        do {
                struct tr_settings *settings = NULL;

                failing_arm(++after);
                r = tr_settings_load(file, TR_SETTINGS_USER, &problems, &notes, &settings);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                ck_assert(!settings == failing_hit());
                ck_assert_uint_eq(problems.count, 0);
                tr_problems_deinit(&notes);
                tr_settings_free(settings);
        } while (failing_hit());
        ck_assert_int_gt(after, 5);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))

int main(void) {
        Suite *suite = suite_create("settings");
        TCase *tests = tcase_create("settings");
        SRunner *runner;
        int failed;

        tcase_set_timeout(tests, SUITE_TIMEOUT_S);
        tcase_add_checked_fixture(tests, set_up, tear_down);
        tcase_add_test(tests, every_key_has_its_default);
        tcase_add_test(tests, the_defaults_are_a_configuration);
        tcase_add_test(tests, every_key_is_read);
        tcase_add_test(tests, access_is_read);
        tcase_add_test(tests, actors_are_read);
        tcase_add_test(tests, pools_are_read);
        tcase_add_test(tests, relative_paths_start_at_the_files_folder);
        tcase_add_test(tests, a_users_own_places);
        tcase_add_test(tests, a_users_own_file_is_found);
        tcase_add_test(tests, a_file_that_was_named_must_be_there);
        tcase_add_loop_test(tests, a_mistake_has_its_line_and_key, 0, COUNT(mistakes));
        tcase_add_test(tests, nesting_of_arguments_is_bounded);
        tcase_add_test(tests, what_asks_for_nothing_is_not_told);
        tcase_add_test(tests, what_is_not_built_yet_is_told);
        tcase_add_test(tests, components_are_folders_files_and_manifests);
        tcase_add_test(tests, the_default_folder_is_beside_the_file);
        tcase_add_test(tests, components_need_no_configuration);
        tcase_add_test(tests, what_is_wrong_with_a_component_is_told_with_its_place);
        tcase_add_test(tests, want_of_memory_is_an_error_and_nothing_else);
        suite_add_tcase(suite, tests);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
