/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches. A message may be answered, and freed, as soon as it is posted; so all that is needed of it after that is
 * in its entry.
 */
#include "config.h"

#include "daemon/io/batch.h"

#include <string.h>

#include "daemon/core/message.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

void tr_batch_init(struct tr_batch *batch) {
        *batch = (struct tr_batch){ 0 };
        tr_list_init(&batch->messages);
}

struct tr_target *tr_batch_target(const struct tr_batch *batch, const struct tr_connection *connection,
                                  const struct tr_span *written) {
        bool same = batch->target && batch->connection == connection && batch->target_len == written->bytes &&
                    memcmp(batch->target_bytes, written->data, written->bytes) == 0;
        return same ? batch->target : NULL;
}

static void batch_begin(struct tr_batch *batch, struct tr_connection *connection, struct tr_target *take_target,
                        const struct tr_span *written) {
        batch->connection = connection;
        batch->target = take_target;
        batch->target_len = 0;
        batch->has_asks = false;
        batch->has_acknowledges = false;
        if (written->bytes > sizeof(batch->target_bytes))
                return;
        memcpy(batch->target_bytes, written->data, written->bytes);
        batch->target_len = written->bytes;
}

void tr_batch_add(struct tr_batch *batch, struct tr_connection *connection, struct tr_target *target,
                  const struct tr_span *written, struct tr_message *take_message, bool acknowledge, uint32_t id) {
        if (batch->target != target || batch->connection != connection || batch->count == TR_BATCH_MAX) {
                tr_target_ref(target); /* it may be the batch's own */
                tr_batch_flush(batch);
                batch_begin(batch, connection, target, written);
        }
        tr_list_append(&batch->messages, &take_message->link);
        batch->entries[batch->count++] = (struct tr_batch_entry){ .id = id, .acknowledge = acknowledge };
        batch->has_asks |= take_message->asker != NULL;
        batch->has_acknowledges |= acknowledge;
}

static void tell_refused(const struct tr_connection *connection, struct tr_target *target,
                         const struct tr_message *message, const struct tr_failure *failure, bool is_ask) {
        struct tr_refused refused = tr_refused_message(target, message, failure);
        refused.is_ask = is_ask;
        refused.sender_pid = connection->peer.pid;
        tr_system_tell_refused(connection->server->system, &refused);
}

/* An ask that cannot be pending, as its sender hears of it. */
static void batch_refuse_ask_locked(struct tr_batch *batch, struct tr_connection *connection,
                                    const struct tr_message *message, const struct tr_batch_entry *entry,
                                    const struct tr_failure *failure) TR_REQUIRES(connection->lock) {
        if (message->asker == &connection->asker || entry->acknowledge)
                tr_connection_refuse_locked(connection, entry->id, failure);
        else
                tell_refused(connection, batch->target, message, failure, false);
}

/* Makes an ask pending. One with a reply is acknowledged at once: before its outcome, whoever writes that. */
static struct tr_failure *batch_expect_ask_locked(struct tr_connection *connection, struct tr_message *message,
                                                  struct tr_batch_entry *entry) TR_REQUIRES(connection->lock) {
        struct tr_failure *failure = tr_connection_expect_locked(connection, message);
        if (!failure && entry->acknowledge) {
                tr_connection_acknowledge_locked(connection, entry->id);
                entry->acknowledge = false;
        }
        return failure;
}

/* Makes the asks pending. Those that cannot be are answered, and leave the batch. */
static void batch_expect(struct tr_batch *batch, struct tr_list *refused) {
        struct tr_connection *connection = batch->connection;
        struct tr_message *message;
        uint32_t at = 0, kept = 0;

        tr_lock_acquire(&connection->lock);
        tr_list_for_each(message, &batch->messages, link) {
                struct tr_batch_entry entry = batch->entries[at++];
                struct tr_failure *failure =
                        message->asker ? batch_expect_ask_locked(connection, message, &entry) : NULL;
                if (!failure) {
                        batch->entries[kept++] = entry;
                        continue;
                }
                connection->flooding |= failure->code != TR_CODE_BAD_REQUEST;
                batch_refuse_ask_locked(batch, connection, message, &entry, failure);
                tr_failure_unref(failure);
                tr_list_unlink(&message->link);
                tr_list_append(refused, &message->link);
        }
        tr_lock_release(&connection->lock);
        batch->count = kept;
}

/* Drops messages that nobody waits for any more; not under the lock, since each may hold the connection's last
 * reference. */
static void drop_all(struct tr_list *messages) {
        struct tr_message *message;
        tr_list_for_each(message, messages, link) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
        }
}

/* Tells whoever sent it that the first message was not taken: an ask by its own failure, a send by that of the post. */
static void batch_refuse_first(struct tr_batch *batch, struct tr_batch_entry *entry, struct tr_failure *failure,
                               struct tr_failure *ask_failure) {
        struct tr_message *message = tr_container_of(batch->messages.next, struct tr_message, link);
        bool begun;
        entry->refused = true;
        tell_refused(batch->connection, batch->target, message, failure, message->asker);
        /* One that a deadline settled meanwhile is answered already. */
        if (message->asker && tr_message_settle(message, &begun))
                tr_connection_reject(batch->connection, message, ask_failure, TR_RAN_NO);
        else if (entry->acknowledge)
                tr_connection_refuse(batch->connection, entry->id, failure);
        tr_list_unlink(&message->link);
        tr_message_unref(message);
}

static uint32_t list_count(const struct tr_list *list) {
        uint32_t count = 0;
        for (const struct tr_list *at = list->next; at != list; at = at->next)
                count++;
        return count;
}

/* Posts all. One that is too large for the mailbox says nothing of those behind it; a full or closed mailbox does. */
static void batch_post(struct tr_batch *batch) {
        while (!tr_list_is_empty(&batch->messages)) {
                enum tr_post post = batch->target->ops->post(batch->target, &batch->messages);
                if (post == TR_POST_OK)
                        return;
                batch->connection->flooding |= post == TR_POST_FULL;
                struct tr_batch_entry *entry = &batch->entries[batch->count - list_count(&batch->messages)];
                struct tr_failure *failure = tr_post_failure(post);
                struct tr_failure *ask_failure = tr_target_refusal(batch->target, post);
                do
                        batch_refuse_first(batch, entry++, failure, ask_failure);
                while (post != TR_POST_TOO_LARGE && !tr_list_is_empty(&batch->messages));
                tr_failure_unref(ask_failure);
                tr_failure_unref(failure);
        }
}

static void batch_acknowledge(struct tr_batch *batch) {
        struct tr_connection *connection = batch->connection;
        tr_lock_acquire(&connection->lock);
        for (uint32_t i = 0; i < batch->count; i++)
                if (batch->entries[i].acknowledge && !batch->entries[i].refused)
                        tr_connection_acknowledge_locked(connection, batch->entries[i].id);
        tr_lock_release(&connection->lock);
}

void tr_batch_flush(struct tr_batch *batch) {
        if (!batch->target)
                return;
        struct tr_list refused = TR_LIST_INIT(refused);
        if (batch->has_asks)
                batch_expect(batch, &refused);
        batch_post(batch);
        if (batch->has_acknowledges)
                batch_acknowledge(batch);
        drop_all(&refused);
        tr_target_unref(batch->target);
        batch->target = NULL;
        batch->connection = NULL;
        batch->count = 0;
}
