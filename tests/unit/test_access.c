/* SPDX-License-Identifier: Apache-2.0 */
/* Access: which rule a peer's rights come from, which names a pattern stands for, and what of the configuration becomes a rule. */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/access.h"
#include "daemon/base/log.h"
#include "daemon/io/access.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"
#include "tests/unit/failing.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

#define OWN 1000

static char media_all[] = "media.*", clock_alone[] = "clock";
static char *media[] = { media_all, clock_alone, NULL };
static char *none[] = { NULL };

static struct tr_access_rule rules[] = {
        { .is_group = false, .id = TR_NOBODY, .roles = TR_ROLE_ALL },
        { .is_group = true, .id = TR_NOBODY, .roles = TR_ROLE_ALL },
        { .is_group = false, .id = 2000, .roles = TR_ROLE_CALL | TR_ROLE_SERVE, .names = media },
        { .is_group = true, .id = 50, .roles = 0, .names = none },
        { .is_group = false, .id = 2001, .roles = TR_ROLE_SPAWN },
        { .is_group = true, .id = 51, .roles = TR_ROLE_OPERATE },
        { .is_group = false, .id = 0, .roles = 0 },
        { .is_group = false, .id = OWN, .roles = 0 },
};
static const struct tr_access access_rules = { rules, sizeof(rules) / sizeof(rules[0]) };

static struct tr_grant grant(uid_t uid, gid_t gid, gid_t supplementary) {
        struct tr_peer peer = { .uid = uid, .gid = gid, .groups = &supplementary, .groups_count = supplementary != 0 };
        return tr_access_grant(&access_rules, &peer, OWN);
}

static void assert_grant(struct tr_grant granted, unsigned int roles, char *const *names) {
        ck_assert_uint_eq(granted.roles, roles);
        ck_assert_ptr_eq(granted.names, names);
}

START_TEST(the_first_rule_that_matches_decides) {
        assert_grant(grant(2000, 2000, 0), TR_ROLE_CALL | TR_ROLE_SERVE, media);
        assert_grant(grant(2000, 50, 51), TR_ROLE_CALL | TR_ROLE_SERVE, media);
        assert_grant(grant(2001, 2001, 0), TR_ROLE_SPAWN, NULL);
        assert_grant(grant(2001, 50, 0), 0, none);
        assert_grant(grant(2001, 2001, 50), 0, none);
        assert_grant(grant(2002, 51, 50), 0, none);
        assert_grant(grant(2002, 51, 0), TR_ROLE_ALL, NULL);
        assert_grant(grant(2002, 2002, 51), TR_ROLE_ALL, NULL);
}
END_TEST

START_TEST(whom_none_matches_may_call) {
        const struct tr_access no_rules = { 0 };
        const struct tr_peer other = { .uid = 2000, .gid = 51 };
        assert_grant(grant(2002, 2002, 0), TR_ROLE_CALL, NULL);
        assert_grant(tr_access_grant(&no_rules, &other, OWN), TR_ROLE_CALL, NULL);
}
END_TEST

START_TEST(root_and_the_daemons_own_user_may_do_everything) {
        assert_grant(grant(0, 50, 0), TR_ROLE_ALL, NULL);
        assert_grant(grant(OWN, 50, 0), TR_ROLE_ALL, NULL);
}
END_TEST

START_TEST(no_rule_is_for_nobody) {
        const struct tr_peer nobody = { .uid = TR_NOBODY, .gid = 51 };
        assert_grant(grant(TR_NOBODY, TR_NOBODY, TR_NOBODY), TR_ROLE_CALL, NULL);
        assert_grant(grant(TR_NOBODY, 51, 51), TR_ROLE_CALL, NULL);
        assert_grant(grant(2002, TR_NOBODY, TR_NOBODY), TR_ROLE_CALL, NULL);
        /* A daemon that runs as nobody is not everybody's. */
        assert_grant(tr_access_grant(&access_rules, &nobody, TR_NOBODY), TR_ROLE_CALL, NULL);
}
END_TEST

START_TEST(groups_that_could_not_be_read_grant_nothing) {
        const struct tr_peer first = { .uid = 2000, .gid = 7, .groups_failed = true };
        const struct tr_peer member = { .uid = 2001, .gid = 50, .groups_failed = true };
        const struct tr_peer perhaps = { .uid = 2001, .gid = 7, .groups_failed = true };
        const struct tr_peer root = { .uid = 0, .groups_failed = true };
        struct tr_access users = { rules + 2, 1 };
        /* a user's rule before it decides; and the own group is known */
        assert_grant(tr_access_grant(&access_rules, &first, OWN), TR_ROLE_CALL | TR_ROLE_SERVE, media);
        assert_grant(tr_access_grant(&users, &perhaps, OWN), TR_ROLE_CALL, NULL);
        struct tr_access from_group = { rules + 2, access_rules.count - 2 };
        assert_grant(tr_access_grant(&from_group, &member, OWN), 0, none);
        assert_grant(tr_access_grant(&from_group, &perhaps, OWN), TR_ROLE_NONE, NULL);
        assert_grant(tr_access_grant(&access_rules, &root, OWN), TR_ROLE_ALL, NULL);
}
END_TEST

START_TEST(want_of_memory_leaves_the_groups_unknown) {
        gid_t groups[] = { 50, 51 };
        struct tr_peer peer;
        int fds[2];

        if (getgroups(0, NULL) == 0 && setgroups(2, groups) < 0)
                return; /* somebody else, who has none */
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        failing_arm(1);
        tr_peer_read(&peer, fds[0]);
        failing_arm(0);
        ck_assert(failing_hit());
        ck_assert(peer.groups_failed);
        ck_assert_uint_eq(peer.groups_count, 0);
        tr_peer_deinit(&peer);
        tr_peer_read(&peer, fds[0]);
        ck_assert(!peer.groups_failed);
        ck_assert_uint_gt(peer.groups_count, 0);
        tr_peer_deinit(&peer);
        close(fds[0]);
        close(fds[1]);
}
END_TEST

static bool matches(const char *pattern, const char *name) {
        return tr_access_matches(pattern, name, strlen(name));
}

START_TEST(a_pattern_is_a_name_or_what_names_begin_with) {
        ck_assert(matches("media", "media"));
        ck_assert(!matches("media", "media.x"));
        ck_assert(!matches("media", "medi"));
        ck_assert(!matches("media", "Media"));
        ck_assert(matches("media.*", "media.x"));
        ck_assert(matches("media.*", "media.x.y"));
        ck_assert(!matches("media.*", "media"));
        ck_assert(!matches("media.*", "mediax"));
        ck_assert(!matches("media.*", "x.media.x"));
        ck_assert(matches("media*", "media"));
        ck_assert(matches("media*", "media.x"));
        ck_assert(matches("media*", "mediax"));
        ck_assert(!matches("media*", "medi"));
        ck_assert(matches("*", "a"));
        ck_assert(matches("*", "a.b"));
        /* what is behind the name in its buffer is not looked at */
        ck_assert(!tr_access_matches("media.*", "media.x", 5));
        ck_assert(tr_access_matches("media", "media.x", 5));
}
END_TEST

/* From a configuration to rules */

static struct tr_problems problems, notes;

static struct tr_settings *settings_of(const char *text) {
        struct tr_settings *settings;
        int r = tr_settings_parse("/trouped.json", text, strlen(text), TR_SETTINGS_SYSTEM, &problems, &notes, &settings);
        ck_assert_int_eq(r, 0);
        return settings;
}

START_TEST(users_and_groups_are_found_by_name_and_by_number) {
        struct tr_settings *settings = settings_of(
                "{\"access\": [{\"user\": \"daemon\", \"roles\": [\"call\", \"serve\"], \"names\": [\"a\", \"b.*\"]},\n"
                " {\"group\": \"daemon\", \"roles\": [\"spawn\"], \"names\": []}, {\"user\": \"4711\", \"roles\": []},\n"
                " {\"group\": \"4712\", \"roles\": [\"operate\"]}]}");
        struct tr_access access;

        ck_assert_int_eq(tr_access_resolve(settings, &notes, &access), 0);
        tr_settings_free(settings); /* the rules are their own */
        ck_assert_uint_eq(notes.count, 0);
        ck_assert_uint_eq(access.count, 4);
        ck_assert(!access.rules[0].is_group);
        ck_assert_uint_eq(access.rules[0].id, getpwnam("daemon")->pw_uid);
        ck_assert_uint_eq(access.rules[0].roles, TR_ROLE_CALL | TR_ROLE_SERVE);
        ck_assert_str_eq(access.rules[0].names[0], "a");
        ck_assert_str_eq(access.rules[0].names[1], "b.*");
        ck_assert_ptr_null(access.rules[0].names[2]);
        ck_assert(access.rules[1].is_group);
        ck_assert_uint_eq(access.rules[1].id, getgrnam("daemon")->gr_gid);
        ck_assert_ptr_null(access.rules[1].names[0]);
        ck_assert_uint_eq(access.rules[2].id, 4711);
        ck_assert_uint_eq(access.rules[2].roles, 0);
        ck_assert_ptr_null(access.rules[2].names);
        ck_assert(access.rules[3].is_group);
        ck_assert_uint_eq(access.rules[3].id, 4712);
        tr_access_deinit(&access);
}
END_TEST

START_TEST(who_is_not_there_is_nobody_and_it_is_told) {
        static const char *const said[] = {
                "/trouped.json:1: access[0].user: there is no user no-such-user here: the rule matches nobody",
                "/trouped.json:2: access[1].group: there is no group no-such-group here: the rule matches nobody",
                "/trouped.json:2: access[2].user: there is no user 4294967295 here: the rule matches nobody",
                "/trouped.json:2: access[3].user: there is no user -1 here: the rule matches nobody",
                "/trouped.json:3: access[4].user: the user 65534 is nobody, whom no rule matches",
        };
        struct tr_settings *settings = settings_of(
                "{\"access\": [{\"user\": \"no-such-user\", \"roles\": [\"operate\"]},\n"
                " {\"group\": \"no-such-group\", \"roles\": []}, {\"user\": \"4294967295\", \"roles\": []}, {\"user\": \"-1\", \"roles\": []},\n"
                " {\"user\": \"65534\", \"roles\": []}]}");
        struct tr_access access;

        ck_assert_int_eq(tr_access_resolve(settings, &notes, &access), 0);
        tr_settings_free(settings);
        ck_assert_uint_eq(notes.count, sizeof(said) / sizeof(said[0]));
        for (size_t i = 0; i < notes.count; i++) {
                char *text = tr_problem_text(&notes.list[i]);
                ck_assert_str_eq(text, said[i]);
                free(text);
                ck_assert_uint_eq(access.rules[i].id, TR_NOBODY);
        }
        tr_problems_deinit(&notes);
        tr_access_deinit(&access);
}
END_TEST

START_TEST(want_of_memory_gives_no_rules) {
        struct tr_settings *settings = settings_of(
                "{\"access\": [{\"user\": \"4711\", \"roles\": [\"call\"], \"names\": [\"a\", \"b.*\"]},\n"
                " {\"group\": \"65534\", \"roles\": []}]}");
        long after = 0;
        int r;

        /* what looking up names keeps for itself is made before */
        (void)getpwnam("4711");
        (void)getgrnam("65534");
        tr_log_set_level(TR_LOG_ERROR);
        do {
                struct tr_access access = { 0 };
                failing_arm(++after);
                r = tr_access_resolve(settings, &notes, &access);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                ck_assert_uint_eq(access.count, r == 0 ? 2 : 0);
                tr_access_deinit(&access);
                tr_problems_deinit(&notes);
        } while (failing_hit());
        ck_assert_int_gt(after, 3);
        tr_settings_free(settings);
}
END_TEST

/* What connections are granted */

static struct io_fixture fixture;
static struct io_client client;

static void set_rule(struct io_fixture *own, void *userdata) {
        const struct tr_access_rule *rule = userdata;
        struct tr_access access = { .rules = calloc(1, sizeof(*access.rules)), .count = 1 };
        ck_assert_ptr_nonnull(access.rules);
        if (access.rules) {
                access.rules[0] = *rule;
                access.rules[0].names = rule->names ? calloc(2, sizeof(char *)) : NULL;
                if (access.rules[0].names)
                        access.rules[0].names[0] = strdup(rule->names[0]);
                tr_server_set_access(own->server, &access);
        }
}

/* The connection's peer is somebody else from here on. */
static void be_somebody(struct io_fixture *own, void *userdata) {
        struct tr_connection *connection = tr_list_first(&own->server->connections, struct tr_connection, link);
        ck_assert_ptr_nonnull(connection);
        if (connection) {
                connection->peer.uid = 2000;
                tr_connection_authorize(connection);
        }
}

START_TEST(new_rules_are_for_connections_that_are_there_too) {
        struct tr_access_rule rule = { .id = 2000, .roles = TR_ROLE_CALL, .names = media };

        io_begin(&fixture, &client, NULL);
        io_client_say(&client, "[0,0,'hello',[{'errors':'map'}]]");
        ck_assert_ptr_nonnull(strstr(io_client_hear(&client), "'roles':['call','serve','spawn','operate']"));
        io_fixture_run(&fixture, be_somebody, NULL);
        io_client_say(&client, "[0,1,'find',['other']]");
        io_client_expect(&client, "[1,1,nil,nil]");

        io_fixture_run(&fixture, set_rule, &rule);
        io_client_say(&client, "[0,2,'find',['media.x']]");
        io_client_expect(&client, "[1,2,nil,nil]");
        io_client_say(&client, "[0,3,'find',['other']]");
        io_client_expect(&client, "[1,3,{'code':'denied','message':'find: access to the name other is not granted','ran':'no'},nil]");

        rule.roles = TR_ROLE_SERVE;
        io_fixture_run(&fixture, set_rule, &rule);
        io_client_say(&client, "[0,4,'find',['media.x']]");
        io_client_expect(&client, "[1,4,{'code':'denied','message':'find needs the role call','ran':'no'},nil]");

        rule = (struct tr_access_rule){ .id = 2000, .roles = TR_ROLE_OPERATE };
        io_fixture_run(&fixture, set_rule, &rule);
        io_client_say(&client, "[0,5,'find',['other']]");
        io_client_expect(&client, "[1,5,nil,nil]");
        io_end(&fixture, &client);
}
END_TEST

suite_main("access", the_first_rule_that_matches_decides, whom_none_matches_may_call,
           root_and_the_daemons_own_user_may_do_everything, no_rule_is_for_nobody, groups_that_could_not_be_read_grant_nothing,
           want_of_memory_leaves_the_groups_unknown, a_pattern_is_a_name_or_what_names_begin_with,
           users_and_groups_are_found_by_name_and_by_number, who_is_not_there_is_nobody_and_it_is_told,
           want_of_memory_gives_no_rules, new_rules_are_for_connections_that_are_there_too);
