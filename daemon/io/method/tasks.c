/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of tasks themselves: tasks {component?, state?}?, an array of those that there are; task-retry id and task-drop id.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/message.h"
#include "daemon/core/task.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/server_internal.h"

static struct tr_failure *ask(const struct tr_request *request, const void *userdata, struct tr_message *take_message) {
        return tr_tasks_ask(request->connection->server->system, userdata, take_message);
}

static struct tr_failure *hand_on(struct tr_request *request, const struct tr_tasks_request *asked) {
        struct tr_message *message = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);
        if (!message)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the request");
        return tr_request_hand_on(request, message, ask, asked);
}

struct tasks_options {
        struct tr_text component;
        struct tr_text state;
};

static const struct tr_option options[] = {
        { "component", TR_OPTION_NAME, offsetof(struct tasks_options, component) },
        { "state", TR_OPTION_TEXT, offsetof(struct tasks_options, state) },
};

struct tr_failure *tr_method_tasks(struct tr_request *request) {
        struct tasks_options chosen = { 0 };
        struct tr_failure *failure = TR_OPTIONS_READ(request, 0, options, &chosen);
        if (failure)
                return failure;
        return hand_on(request, &(struct tr_tasks_request){
                                        .kind = TR_STORE_TASK_LIST,
                                        .component = chosen.component.data,
                                        .component_len = chosen.component.len,
                                        .state = chosen.state.data,
                                        .state_len = chosen.state.len,
                                });
}

static struct tr_failure *hand_on_id(struct tr_request *request, enum tr_store_kind kind) {
        struct tr_tasks_request asked = { .kind = kind };
        struct tr_failure *failure = tr_request_text(request, 0, &asked.id, &asked.id_len);
        return failure ? failure : hand_on(request, &asked);
}

struct tr_failure *tr_method_task_retry(struct tr_request *request) {
        return hand_on_id(request, TR_STORE_TASK_RETRY);
}

struct tr_failure *tr_method_task_drop(struct tr_request *request) {
        return hand_on_id(request, TR_STORE_TASK_DROP);
}
