/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of methods. The commonest stand first: it is searched in order.
 */
#include "config.h"

#include "daemon/io/method.h"

#include <string.h>

static const struct tr_method methods[] = {
        { "ask", TR_ROLE_CALL, 3, 4, true, "target, handler, args, {timeout?, trace?, reply?}?", tr_method_ask },
        { "send", TR_ROLE_CALL, 3, 3, true, "target, handler, args", tr_method_send },
        { "call", TR_ROLE_CALL, 3, 4, false,
          "component, operation, input, {instance?, id?, timeout?, trace?, reply?, where?, sort?, limit?, after?}?", tr_method_call },
        { "cancel", TR_ROLE_NONE, 1, 1, false, "msgid", tr_method_cancel },
        { "find", TR_ROLE_CALL, 1, 1, false, "name", tr_method_find_name },
        { "ping", TR_ROLE_NONE, 0, 0, false, "", tr_method_ping },
        { "hello", TR_ROLE_NONE, 0, 1, false, "{client?, protocol?, errors?, values?, timeout?}?", tr_method_hello },
        { "done", TR_ROLE_CALL, 1, 2, false, "target, {timeout?, reply?}?", tr_method_done },
        { "listen", TR_ROLE_CALL, 0, 1, false, "{method?, params?}?", tr_method_listen },
        { "task", TR_ROLE_CALL, 3, 4, false, "component, operation, input, {delay?, at?, expires?, key?, id?, trace?}?", tr_method_task },
        { "instances", TR_ROLE_CALL, 1, 1, false, "component", tr_method_instances },
        { "serve", TR_ROLE_SERVE, 1, 2, false, "component, {instance?, operations?, concurrency?, method?, params?}?",
          tr_method_serve },
        { "withdraw", TR_ROLE_SERVE, 1, 1, false, "component", tr_method_withdraw },
        { "spawn", TR_ROLE_SPAWN, 2, 3, false,
          "actor, args, {heap?, mailbox?, mailbox_bytes?, async?, name?, detach?, publish?, if_absent?}?",
          tr_method_spawn },
        { "pool", TR_ROLE_SPAWN, 3, 4, false,
          "name, actor, args, {workers?, routing?, queue?, heap?, mailbox?, mailbox_bytes?, async?, backoff?, detach?, "
          "publish?, if_absent?}?",
          tr_method_pool },
        { "stop", TR_ROLE_SPAWN, 1, 2, false, "target, {kill?, within?}?", tr_method_stop },
        { "detach", TR_ROLE_SPAWN, 1, 1, false, "target", tr_method_detach },
        { "publish", TR_ROLE_SPAWN, 2, 2, false, "name, target", tr_method_publish },
        { "unpublish", TR_ROLE_SPAWN, 1, 1, false, "name", tr_method_unpublish },
        { "list", TR_ROLE_SPAWN, 0, 1, false, "{kind?}?", tr_method_list },
        { "info", TR_ROLE_SPAWN, 1, 1, false, "target", tr_method_info },
        { "subscribe", TR_ROLE_CALL, 1, 2, false, "topic, {method?, params?, rate?}?", tr_method_subscribe },
        { "unsubscribe", TR_ROLE_CALL, 1, 1, false, "topic", tr_method_unsubscribe },
        { "trace", TR_ROLE_CALL, 0, 1, false, "{id?, limit?}?", tr_method_trace },
        { "component", TR_ROLE_SPAWN, 1, 1, false, "manifest", tr_method_component },
        { "reload", TR_ROLE_OPERATE, 0, 0, false, "", tr_method_reload },
        { "metrics", TR_ROLE_OPERATE, 0, 0, false, "", tr_method_metrics },
        { "tasks", TR_ROLE_OPERATE, 0, 1, false, "{component?, state?}?", tr_method_tasks },
        { "task-retry", TR_ROLE_OPERATE, 1, 1, false, "id", tr_method_task_retry },
        { "task-drop", TR_ROLE_OPERATE, 1, 1, false, "id", tr_method_task_drop },
        { "backup", TR_ROLE_OPERATE, 1, 1, false, "path", tr_method_backup },
        { "shutdown", TR_ROLE_OPERATE, 0, 0, false, "", tr_method_shutdown },
};

const struct tr_method *tr_method_find(const char *name, size_t len) {
        for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
                if (strlen(methods[i].name) == len && memcmp(methods[i].name, name, len) == 0)
                        return &methods[i];
        return NULL;
}
