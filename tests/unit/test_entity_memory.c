/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entities without memory: each allocation of calls that read and change them fails in turn, and each of what asks for them. Whatever fails,
 * what was accepted ends once, nothing is half changed, and nothing is left (which AddressSanitizer's leak check sees).
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/entity.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "daemon/core/stock.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/fake_store.h"
#include "tests/unit/suite.h"

#define POSTED_MAX 64

enum { LOOK, LIST, CHANGE, CHANGE_TOO, CHANGE_NEW, MAKE, PUT, GET, REMOVE, LIST_SELF, ASKED };

static struct fake_system fake;
static struct fake_store store;
static struct fake_asker asker;
static struct tr_manifest *manifest;
static struct tr_message *posted[POSTED_MAX];
static size_t posted_count;
static bool outdated;

/* [7, {"n": 1}], and that as a document. */
static const uint8_t answer[] = { 0x92, 0x07, 0x81, 0xa1, 'n', 0x01 };
static const uint8_t *const document = answer + 2;
#define DOCUMENT_BYTES 4

static enum tr_post server_post(struct tr_target *target, struct tr_list *messages) {
        struct tr_message *message;
        while ((message = tr_list_first(messages, struct tr_message, link))) {
                if (posted_count == POSTED_MAX) /* not ck_assert(), which allocates */
                        abort();
                tr_list_unlink(&message->link);
                posted[posted_count++] = message;
        }
        return TR_POST_OK;
}

static void server_free(struct tr_target *target) {
        tr_target_deinit(target);
        free(target);
}

static const struct tr_target_ops server_ops = { .kind = TR_TARGET_CONNECTION, .post = server_post, .free = server_free };

static void on_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        tr_replica_retire(replica);
}

static const struct tr_replica_ops replica_ops = { .retired = tr_replica_died, .stop = on_stop, .kill = tr_replica_died };

/* Somebody else has changed what it is about. */
static void outdate(const struct tr_message *delivery) {
        for (size_t i = 0; i < store.count; i++)
                if (strcmp(store.entities[i].id, delivery->behalf->invocation->id) == 0)
                        store.entities[i].version++;
}

/* Answers what was posted, and has the store do what comes of it. The first change of what is there comes too late. */
static void work(void) {
        bool any = true;
        while (any) {
                any = fake_store_step(&store);
                for (size_t i = 0; i < posted_count; i++) {
                        if (!tr_message_begin(posted[i]))
                                continue;
                        any = true;
                        if (!outdated && posted[i]->behalf->invocation->entity->turn.contends) {
                                outdate(posted[i]);
                                outdated = true;
                        }
                        tr_message_resolve(posted[i], answer, sizeof(answer), false);
                }
        }
}

static bool call(struct tr_component *component, struct tr_message *message, const char *id, bool list) {
        static const uint8_t where[] = { 0x81, 0xa1, 'n', 0x01 };
        const struct tr_call_options options = {
                .id = id,
                .id_len = id ? 1 : 0,
                .where = list ? where : NULL,
                .where_bytes = sizeof(where),
                .sort = list ? "n" : NULL,
                .sort_len = 1,
                .after = list ? "0" : NULL,
                .after_len = 1,
        };
        struct tr_failure *failure = tr_component_call(component, message, &options);
        if (!failure)
                return true;
        if (failure->code != TR_CODE_NO_MEMORY)
                abort();
        tr_failure_unref(failure);
        tr_message_unref(message);
        return false;
}

static bool ask(struct tr_component *component, struct tr_message *message, struct tr_entity_request request) {
        request.sort = request.kind == TR_STORE_LIST ? "n" : NULL;
        request.sort_len = 1;
        request.id_len = request.id ? 1 : 0;
        request.expect = TR_STORE_ANY;
        struct tr_failure *failure = tr_entity_ask(component, &request, message);
        if (!failure)
                return true;
        if (failure->code != TR_CODE_NO_MEMORY)
                abort();
        tr_failure_unref(failure);
        tr_message_unref(message);
        return false;
}

/* The messages are made before. */
static void live(struct tr_target *server, struct tr_message *messages[ASKED], bool accepted[ASKED]) {
        const struct tr_replica_options options = { .ops = &replica_ops, .concurrency = 4, .kind = "connection" };
        struct tr_component *component;
        struct tr_replica *replica;
        struct tr_failure *failure = tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component);
        if (failure) {
                tr_failure_unref(failure);
                for (int i = 0; i < ASKED; i++)
                        tr_message_unref(messages[i]);
                return;
        }
        accepted[CHANGE] = call(component, messages[CHANGE], "a", false);
        accepted[CHANGE_TOO] = call(component, messages[CHANGE_TOO], "a", false);
        accepted[LOOK] = call(component, messages[LOOK], "a", false);
        accepted[LIST] = call(component, messages[LIST], NULL, true);
        accepted[CHANGE_NEW] = call(component, messages[CHANGE_NEW], NULL, false);
        accepted[MAKE] = call(component, messages[MAKE], "b", false);
        failure = tr_replica_join(component, &options, server, &replica);
        if (!failure) {
                tr_replica_hold(replica);
                work();
        }
        tr_failure_unref(failure);
        accepted[PUT] = ask(component, messages[PUT], (struct tr_entity_request){
                .kind = TR_STORE_WRITE, .id = "c", .document = document, .document_bytes = DOCUMENT_BYTES,
        });
        accepted[GET] = ask(component, messages[GET], (struct tr_entity_request){ .kind = TR_STORE_GET, .id = "c" });
        accepted[REMOVE] = ask(component, messages[REMOVE], (struct tr_entity_request){ .kind = TR_STORE_DELETE, .id = "c" });
        accepted[LIST_SELF] = ask(component, messages[LIST_SELF], (struct tr_entity_request){ .kind = TR_STORE_LIST });
        work();
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        work();
        if (!tr_target_has_ended(&component->target))
                abort();
        if (!failure)
                tr_replica_unref(replica);
        tr_component_unref(component);
}

START_TEST(each_allocation_fails) {
        static const char *const operations[ASKED] = { "look", "list", "change", "change", "change", "make", "", "", "", "" };
        static const char text[] =
                "{\"name\": \"shelf\", \"entity\": {\"properties\": {\"n\": {\"type\": \"integer\"}}}, \"operations\":"
                " {\"look\": {\"type\": \"observation\"}, \"list\": {\"type\": \"observation\", \"scope\": \"entries\"},"
                " \"change\": {\"type\": \"transition\", \"output\": {\"type\": \"integer\"}}, \"make\": {\"type\": \"assignment\"}}}";
        struct tr_manifest_problem problem = { 0 };
        json_t *json = json_loads(text, 0, NULL);
        tr_stock_disable();
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), 0);
        json_decref(json);
        long n = 0;
        do {
                struct tr_message *messages[ASKED];
                bool accepted[ASKED] = { 0 };
                unsigned int seen[ASKED] = { 0 };
                struct tr_target *server = calloc(1, sizeof(*server));
                fake_system_init(&fake, 8);
                fake_store_init(&store);
                fake.system->store = &store.store;
                fake_store_put(&store, "a", "{'n':0}");
                fake_asker_init(&asker);
                ck_assert_ptr_nonnull(server);
                ck_assert_int_eq(tr_target_init(server, &server_ops, fake.system, 0, "server", ""), 0);
                posted_count = 0;
                outdated = false;
                for (uint64_t i = 0; i < ASKED; i++) {
                        messages[i] = fake_message(&asker, i, operations[i], 1);
                        messages[i]->form = i % 2 ? TR_FORM_TYPED : TR_FORM_PLAIN;
                }
                failing_arm(++n);
                live(server, messages, accepted);
                failing_arm(0);
                for (size_t i = 0; i < posted_count; i++)
                        tr_message_unref(posted[i]);
                tr_target_unref(server);
                for (size_t i = 0; i < asker.count; i++)
                        seen[asker.outcomes[i].id]++;
                for (int i = 0; i < ASKED; i++)
                        ck_assert_msg(seen[i] == accepted[i], "allocation %ld: %d has %u outcomes", n, i, seen[i]);
                for (size_t i = 0; i < asker.count; i++)
                        if (!failing_hit())
                                ck_assert_msg(asker.outcomes[i].resolved, "%u: %s", (unsigned int)asker.outcomes[i].id,
                                              tr_code_text(asker.outcomes[i].code));
                fake_system_deinit(&fake);
                fake_asker_deinit(&asker);
                fake_store_deinit(&store);
        } while (failing_hit());
        ck_assert_int_gt(n, 60);
        ck_assert_uint_eq(posted_count, PUT + 1); /* one was run again */
        tr_manifest_unref(manifest);
}
END_TEST

suite_main("entity_memory", each_allocation_fails);
