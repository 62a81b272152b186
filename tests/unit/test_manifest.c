/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests: every key, every kind of mistake with its place, MessagePack in place of JSON; and the installed JSON Schema, which
 * says of each manifest here what the reader says.
 */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/contract/json.h"
#include "daemon/contract/manifest.h"
#include "daemon/contract/schema.h"
#include "proto/limits.h"
#include "tests/unit/failing.h"
#include "tests/unit/notation.h"
#include "tests/unit/suite.h"

static json_t *parse(const char *text) {
        json_error_t error;
        json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);

        ck_assert_msg(json, "%s: %s", text, error.text);
        return json;
}

static struct tr_manifest *read_text(const char *text) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        json_t *json = parse(text);
        int r = tr_manifest_read(json, "/folder", &problem, &manifest);

        ck_assert_msg(r == 0, "%s: %s", problem.path, problem.reason);
        json_decref(json);
        return manifest;
}

static const char whole[] =
        "{\"name\": \"media.streams\", \"module\": \"streams\", \"concurrency\": 8, \"deliveries\": 2, \"attempts\": 5,\n"
        " \"replicas\": [{\"instance\": \"left\", \"args\": {\"port\": \"/dev/ttyS0\"}}, {\"args\": null}, {}],\n"
        " \"queue\": 7, \"entity\": {\"properties\": {\"holder\": {\"type\": \"string\"}}}, \"lost\": \"reopen\",\n"
        " \"allow\": [\"native\", \"files\"], \"heap\": \"1M\",\n"
        " \"process\": {\"command\": [\"python3\", \"worker.py\", \"\"], \"replicas\": [{\"instance\": \"p\"}],\n"
        "  \"cwd\": \"work\", \"env\": {\"A\": \"b=c\", \"D\": \"\"}},\n"
        " \"operations\": {\n"
        "  \"watch\": {\"stateful\": true, \"errors\": [\"NOT_HELD\", \"E.2\"], \"timeout\": \"5s\", \"doc\": \"next\"},\n"
        "  \"create\": {\"type\": \"assignment\", \"input\": {\"type\": \"object\"}, \"output\": true},\n"
        "  \"list\": {\"type\": \"observation\", \"scope\": \"entries\"},\n"
        "  \"get\": {\"type\": \"observation\", \"scope\": \"entry\", \"stateful\": false, \"timeout\": 1},\n"
        "  \"finish\": {\"type\": \"transition\", \"errors\": []},\n"
        "  \"reopen\": {\"type\": \"effect\"}}}";

static const char *const good[] = {
        whole,
        "{\"name\": \"n\", \"operations\": {\"o\": {}}}",
        "{\"name\": \"n\", \"operations\": {\"o\": {}}, \"replicas\": 0, \"module\": \"m\"}",
        "{\"name\": \"n\", \"operations\": {\"o\": {}}, \"replicas\": 1024, \"module\": \"m\", \"heap\": 65536}",
        "{\"name\": \"n\", \"operations\": {\"o\": {\"timeout\": 31536000000}}, \"replicas\": 2.0, \"allow\": []}",
        "{\"name\": \"n\", \"operations\": {\"o\": {\"type\": \"computation\", \"input\": false}}, \"replicas\": []}",
        "{\"name\": \"n\", \"operations\": {\"o\": {}}, \"process\": {\"command\": [\"c\"], \"env\": {}, \"cwd\": \"/w\"}}",
        "{\"name\": \"n\", \"operations\": {\"o\": {}}, \"process\": {\"command\": [\"c\"], \"replicas\": 3}}",
        "{\"name\": \"n\", \"operations\": {\"o\": {}}, \"lost\": \"o\", \"queue\": 4294967295}",
};

static const struct tr_operation *operation(const struct tr_manifest *manifest, const char *name) {
        const struct tr_operation *found = tr_manifest_find(manifest, name, strlen(name));

        ck_assert_ptr_nonnull(found);
        ck_assert_str_eq(found->name, name);
        return found;
}

START_TEST(every_key_is_read) {
        struct tr_manifest *manifest = read_text(whole);
        const struct tr_operation *watch = operation(manifest, "watch"), *create = operation(manifest, "create");
        static const uint8_t args[] = { 0x81, 0xa4, 'p', 'o', 'r', 't', 0xaa, '/', 'd', 'e', 'v', '/', 't', 't', 'y', 'S', '0' };

        ck_assert_str_eq(manifest->name, "media.streams");
        ck_assert_str_eq(manifest->module, "streams");
        ck_assert_uint_eq(manifest->concurrency, 8);
        ck_assert_uint_eq(manifest->deliveries, 2);
        ck_assert_uint_eq(manifest->attempts, 5);
        ck_assert_uint_eq(manifest->queue, 7);
        ck_assert_uint_eq(manifest->heap_bytes, 1 << 20);
        ck_assert_ptr_nonnull(manifest->entity);
        ck_assert_str_eq(manifest->lost, "reopen");
        ck_assert(manifest->has_allow);
        ck_assert_uint_eq(manifest->allow, 1 << 0 | 1 << 2);
        ck_assert_uint_eq(manifest->replicas.count, 3);
        ck_assert_str_eq(manifest->replicas.list[0].instance, "left");
        ck_assert_uint_eq(manifest->replicas.list[0].args_bytes, sizeof(args));
        ck_assert_mem_eq(manifest->replicas.list[0].args, args, sizeof(args));
        ck_assert_ptr_null(manifest->replicas.list[1].instance);
        ck_assert_uint_eq(manifest->replicas.list[1].args[0], 0xc0);
        ck_assert_ptr_null(manifest->replicas.list[2].args);
        ck_assert_str_eq(manifest->process->command[0], "python3");
        ck_assert_str_eq(manifest->process->command[1], "worker.py");
        ck_assert_str_eq(manifest->process->command[2], "");
        ck_assert_ptr_null(manifest->process->command[3]);
        ck_assert_str_eq(manifest->process->cwd, "/folder/work");
        ck_assert_str_eq(manifest->process->env[0], "A=b=c");
        ck_assert_str_eq(manifest->process->env[1], "D=");
        ck_assert_ptr_null(manifest->process->env[2]);
        ck_assert_uint_eq(manifest->process->replicas.count, 1);
        ck_assert_str_eq(manifest->process->replicas.list[0].instance, "p");
        ck_assert_uint_eq(manifest->operations_count, 6);
        ck_assert(watch->stateful && !create->stateful);
        ck_assert_int_eq(watch->type, TR_OPERATION_COMPUTATION);
        ck_assert_int_eq(create->type, TR_OPERATION_ASSIGNMENT);
        ck_assert_int_eq(operation(manifest, "list")->type, TR_OPERATION_OBSERVATION);
        ck_assert_int_eq(operation(manifest, "finish")->type, TR_OPERATION_TRANSITION);
        ck_assert_int_eq(operation(manifest, "reopen")->type, TR_OPERATION_EFFECT);
        ck_assert(operation(manifest, "list")->entries && !operation(manifest, "get")->entries);
        ck_assert(create->input && create->output && !watch->input && !watch->output);
        ck_assert_uint_eq(watch->timeout_ms, 5000);
        ck_assert_uint_eq(operation(manifest, "get")->timeout_ms, 1);
        ck_assert_uint_eq(create->timeout_ms, 0);
        ck_assert_str_eq(watch->doc, "next");
        ck_assert(tr_operation_declares(watch, "NOT_HELD", 8) && tr_operation_declares(watch, "E.2", 3));
        ck_assert(!tr_operation_declares(watch, "NOT_HEL", 7) && !tr_operation_declares(watch, "NOT_HELD2", 9));
        ck_assert(!tr_operation_declares(create, "NOT_HELD", 8));
        tr_manifest_unref(manifest);
}
END_TEST

START_TEST(what_is_not_given_has_its_default) {
        struct tr_manifest *manifest = read_text("{\"name\": \"n\", \"module\": \"m\", \"operations\": {\"o\": {}}}");

        ck_assert_uint_eq(manifest->concurrency, 1);
        ck_assert_uint_eq(manifest->deliveries, 3);
        ck_assert_uint_eq(manifest->attempts, 16);
        ck_assert_uint_eq(manifest->queue + manifest->heap_bytes + manifest->allow, 0);
        ck_assert(!manifest->has_allow && !manifest->entity && !manifest->lost && !manifest->process);
        ck_assert_uint_eq(manifest->replicas.count, 1);
        ck_assert_ptr_null(manifest->replicas.list[0].instance);
        ck_assert_int_eq(manifest->operations[0].type, TR_OPERATION_COMPUTATION);
        ck_assert(!manifest->operations[0].stateful && !manifest->operations[0].entries);
        tr_manifest_unref(manifest);

        /* replicas are the module's */
        manifest = read_text("{\"name\": \"n\", \"replicas\": [{\"instance\": \"i\", \"args\": 1}], \"operations\": {\"o\": {}}}");
        ck_assert_uint_eq(manifest->replicas.count, 0);
        tr_manifest_unref(manifest);
        manifest = read_text("{\"name\": \"n\", \"operations\": {\"o\": {}}, \"process\": {\"command\": [\"c\"]}}");
        ck_assert_uint_eq(manifest->replicas.count, 0);
        ck_assert_uint_eq(manifest->process->replicas.count, 1);
        ck_assert_ptr_null(manifest->process->cwd);
        ck_assert_ptr_null(manifest->process->env);
        tr_manifest_unref(manifest);
}
END_TEST

START_TEST(operations_are_found_by_name) {
        char text[16384], name[16];
        size_t len = (size_t)snprintf(text, sizeof(text), "{\"name\": \"n\", \"operations\": {");
        struct tr_manifest *manifest;

        for (int i = 0; i < 300; i++)
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"o%d\": {\"timeout\": %d}", i ? ", " : "",
                                        i * 7 % 300, i * 7 % 300 + 1);
        snprintf(text + len, sizeof(text) - len, "}}");
        manifest = read_text(text);
        for (int i = 0; i < 300; i++) {
                snprintf(name, sizeof(name), "o%d", i);
                ck_assert_uint_eq(operation(manifest, name)->timeout_ms, (uint64_t)i + 1);
        }
        ck_assert_ptr_null(tr_manifest_find(manifest, "o300", 4));
        ck_assert_ptr_null(tr_manifest_find(manifest, "o", 1));
        ck_assert_ptr_null(tr_manifest_find(manifest, "", 0));
        ck_assert_ptr_null(tr_manifest_find(manifest, "o1\0", 3));
        ck_assert_ptr_null(tr_manifest_find(manifest, "o1\0x", 4));
        /* as long as it is said to be, and no longer */
        ck_assert_str_eq(tr_manifest_find(manifest, "o12xyz", 3)->name, "o12");
        tr_manifest_unref(manifest);
}
END_TEST

static void assert_hash(const char *one, const char *other, bool same) {
        struct tr_manifest *first = read_text(one), *second = read_text(other);

        ck_assert_uint_eq(strlen(first->hash), 64);
        ck_assert_msg((strcmp(first->hash, second->hash) == 0) == same, "%s, %s", one, other);
        tr_manifest_unref(first);
        tr_manifest_unref(second);
}

START_TEST(the_hash_is_of_what_it_says) {
        static const char plain[] = "{\"name\": \"n\", \"queue\": 1, \"operations\": {\"o\": {}, \"p\": {}}}";
        struct tr_manifest *here, *there;
        struct tr_manifest_problem problem;
        json_t *json = parse(whole);

        assert_hash(plain, "{\"operations\":{\"p\":{},\n\"o\":{}},\"queue\":1,\"name\":\"n\"}", true);
        assert_hash(plain, "{\"name\": \"n\", \"queue\": 2, \"operations\": {\"o\": {}, \"p\": {}}}", false);
        assert_hash(plain, "{\"name\": \"n\", \"queue\": 1, \"operations\": {\"o\": {\"input\": true}, \"p\": {}}}", false);
        /* a relative folder is another one elsewhere */
        ck_assert_int_eq(tr_manifest_read(json, "/here", &problem, &here), 0);
        ck_assert_int_eq(tr_manifest_read(json, "/there", &problem, &there), 0);
        ck_assert_str_ne(here->hash, there->hash);
        tr_manifest_unref(here);
        tr_manifest_unref(there);
        json_decref(json);
}
END_TEST

#define NAMES "must be a name: letters, digits, _ and -, in parts joined by dots"
#define OPERATION(inside) "{\"name\": \"n\", \"operations\": {\"o\": {" inside "}}}"
#define MANIFEST(inside) "{\"name\": \"n\", \"operations\": {\"o\": {}, \"s\": {\"stateful\": true}}, " inside "}"
#define PROCESS(inside) MANIFEST("\"process\": {\"command\": [\"c\"], " inside "}")
#define REPLICAS "must be a whole number from 0 to 1024, or a list of so many objects"

static const struct mistake {
        const char *text, *path, *reason;
        bool beyond_schema; /* the JSON Schema cannot say so, or ours takes an empty array as an object */
} mistakes[] = {
        { "[]", "", "must be an object" },
        { "5", "", "must be an object" },
        { "{}", "/name", "is missing" },
        { "{\"name\": \"n\"}", "/operations", "is missing" },
        { "{\"name\": \"n\", \"operations\": {}}", "/operations", "must have 1 to 4096 operations" },
        { "{\"name\": \"n\", \"operations\": []}", "/operations", "must be an object" },
        { "{\"name\": \"a b\", \"operations\": {\"o\": {}}}", "/name", NAMES },
        { "{\"name\": \"a\\u0000b\", \"operations\": {\"o\": {}}}", "/name", NAMES },
        { "{\"name\": null, \"operations\": {\"o\": {}}}", "/name", NAMES },
        { "{\"name\": \"n\", \"operations\": {\"a/b\": {}}}", "/operations/a~1b",
          "is no name: letters, digits, _ and -, in parts joined by dots" },
        { MANIFEST("\"colour\": 1"), "/colour", "is an unknown key" },
        { MANIFEST("\"module\": \"a:B\""), "/module", NAMES },
        { MANIFEST("\"concurrency\": 0"), "/concurrency", "must be a whole number from 1 to 4294967295" },
        { MANIFEST("\"concurrency\": 1.5"), "/concurrency", "must be a whole number from 1 to 4294967295" },
        { MANIFEST("\"deliveries\": -1"), "/deliveries", "must be a whole number from 1 to 4294967295" },
        { MANIFEST("\"attempts\": 0"), "/attempts", "must be a whole number from 1 to 4294967295" },
        { MANIFEST("\"queue\": 4294967296"), "/queue", "must be a whole number from 1 to 4294967295" },
        { MANIFEST("\"queue\": \"5\""), "/queue", "must be a whole number from 1 to 4294967295" },
        { MANIFEST("\"replicas\": -1"), "/replicas", REPLICAS },
        { MANIFEST("\"replicas\": 1025"), "/replicas", REPLICAS },
        { MANIFEST("\"replicas\": {}"), "/replicas", REPLICAS },
        { MANIFEST("\"replicas\": [{}, 1]"), "/replicas/1", "must be an object" },
        { MANIFEST("\"replicas\": [{\"name\": \"x\"}]"), "/replicas/0/name", "is an unknown key" },
        { MANIFEST("\"replicas\": [{\"instance\": \"x y\"}]"), "/replicas/0/instance", NAMES },
        { MANIFEST("\"replicas\": [{\"instance\": \"x\"}, {}, {\"instance\": \"x\"}]"), "/replicas/2/instance",
          "is the name of another replica already", true },
        { PROCESS("\"replicas\": [{\"instance\": \"x\"}]") /* and the module's below */, "", "", true },
        { MANIFEST("\"lost\": \"t\""), "/lost", "names no operation of the component", true },
        { MANIFEST("\"lost\": \"s\""), "/lost", "names a stateful operation, which nobody is left to run", true },
        { MANIFEST("\"allow\": \"files\""), "/allow", "must be a list" },
        { MANIFEST("\"allow\": [\"files\", \"fire\"]"), "/allow/1", "must be one of: files, commands, native" },
        { MANIFEST("\"heap\": 65535"), "/heap", "must be a size from 65536 to 9223372036854775807 bytes" },
        { MANIFEST("\"heap\": \"1T\""), "/heap", "must be a size: bytes, or text with K, M or G (\"64M\")" },
        { MANIFEST("\"heap\": \"1K\""), "/heap", "must be a size from 65536 to 9223372036854775807 bytes", true },
        { MANIFEST("\"entity\": {\"typo\": 1}"), "/entity/typo", NULL, true },
        { MANIFEST("\"entity\": 1"), "/entity", NULL },
        { MANIFEST("\"process\": []"), "/process", "must be an object" },
        { MANIFEST("\"process\": {}"), "/process/command", "is missing" },
        { MANIFEST("\"process\": {\"command\": \"c\"}"), "/process/command", "must be a list: a program and its arguments" },
        { MANIFEST("\"process\": {\"command\": []}"), "/process/command", "must be a list: a program and its arguments" },
        { MANIFEST("\"process\": {\"command\": [\"\"]}"), "/process/command/0", "must be a program" },
        { MANIFEST("\"process\": {\"command\": [\"c\", 1]}"), "/process/command/1", "must be text of 0 to 65536 bytes" },
        { PROCESS("\"shell\": true"), "/process/shell", "is an unknown key" },
        { PROCESS("\"cwd\": \"\""), "/process/cwd", "must be a path" },
        { PROCESS("\"env\": []"), "/process/env", "must be an object", true },
        { PROCESS("\"env\": {\"A\": 1}"), "/process/env/A", "must be text" },
        { PROCESS("\"env\": {\"A=B\": \"\"}"), "/process/env/A=B", "is no name of a variable" },
        { PROCESS("\"env\": {\"\": \"\"}"), "/process/env/", "is no name of a variable" },
        { PROCESS("\"env\": {\"TROUPE_FD\": \"3\"}"), "/process/env/TROUPE_FD", "is set by the daemon" },
        { "{\"name\": \"n\", \"operations\": {\"o\": []}}", "/operations/o", "must be an object", true },
        { OPERATION("\"typ\": 1"), "/operations/o/typ", "is an unknown key" },
        { OPERATION("\"type\": \"query\""), "/operations/o/type",
          "must be one of: computation, effect, observation, transition, assignment" },
        { OPERATION("\"stateful\": 1"), "/operations/o/stateful", "must be true or false" },
        { OPERATION("\"scope\": \"all\""), "/operations/o/scope", "must be one of: entry, entries" },
        { OPERATION("\"scope\": \"entries\""), "/operations/o/scope", "is entries, which only an observation gets" },
        { OPERATION("\"scope\": \"entries\", \"type\": \"effect\""), "/operations/o/scope",
          "is entries, which only an observation gets" },
        { OPERATION("\"input\": {\"properties\": {\"a\": {\"minLenght\": 1}}}"), "/operations/o/input/properties/a/minLenght",
          NULL, true },
        { OPERATION("\"output\": []"), "/operations/o/output", NULL, true },
        { OPERATION("\"errors\": \"E\""), "/operations/o/errors", "must be a list" },
        { OPERATION("\"errors\": [\"E\", \"E F\"]"), "/operations/o/errors/1", NAMES },
        { OPERATION("\"timeout\": 0"), "/operations/o/timeout", "must be a time from 1 to 31536000000 milliseconds" },
        { OPERATION("\"timeout\": \"1w\""), "/operations/o/timeout",
          "must be a time: milliseconds, or text with ms, s, m, h or d (\"10s\")" },
        { OPERATION("\"doc\": 1"), "/operations/o/doc", "must be text of 0 to 65536 bytes" },
};

START_TEST(a_mistake_has_its_place) {
        const struct mistake *mistake = &mistakes[_i];
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        json_t *json = parse(mistake->text);

        if (!*mistake->path && strstr(mistake->text, "process")) {
                /* one name for two replicas of different kinds */
                json_object_set_new(json, "module", json_string("m"));
                json_object_set(json, "replicas", json_object_get(json_object_get(json, "process"), "replicas"));
                ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), TR_MANIFEST_WRONG);
                ck_assert_str_eq(problem.path, "/process/replicas/0/instance");
                ck_assert_str_eq(problem.reason, "is the name of another replica already");
        } else {
                ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), TR_MANIFEST_WRONG);
                ck_assert_str_eq(problem.path, mistake->path);
                if (mistake->reason)
                        ck_assert_str_eq(problem.reason, mistake->reason);
                else
                        ck_assert_uint_gt(strlen(problem.reason), 0);
        }
        ck_assert_ptr_null(manifest);
        tr_manifest_problem_deinit(&problem);
        json_decref(json);
}
END_TEST

START_TEST(there_are_bounds) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        json_t *json = parse("{\"name\": \"n\", \"module\": \"m\"}"), *operations = json_object(), *deep = json_array();
        char name[16];

        for (int i = 0; i <= TR_MANIFEST_OPERATIONS_MAX; i++) {
                snprintf(name, sizeof(name), "o%d", i);
                json_object_set_new(operations, name, json_object());
        }
        json_object_set_new(json, "operations", operations);
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), TR_MANIFEST_WRONG);
        ck_assert_str_eq(problem.path, "/operations");
        tr_manifest_problem_deinit(&problem);
        json_object_del(operations, "o0");
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), 0);
        tr_manifest_unref(manifest);

        for (int i = 0; i < TR_NESTING_MAX; i++) {
                json_t *outer = json_array();

                json_array_append_new(outer, deep);
                deep = outer;
        }
        json_object_set_new(json, "replicas", json_pack("[{s:o}]", "args", deep));
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), TR_MANIFEST_WRONG);
        ck_assert_str_eq(problem.path, "/replicas/0/args");
        ck_assert_str_eq(problem.reason, "is nested deeper than 128 levels");
        tr_manifest_problem_deinit(&problem);
        json_decref(json);
}
END_TEST

/* As MessagePack */

static int parse_notation(const char *text, struct tr_manifest_problem *problem, struct tr_manifest **ret_manifest) {
        struct tr_writer writer = TR_WRITER_INIT;
        int r;

        notation_write(&writer, text);
        r = tr_manifest_parse(writer.data, writer.len, problem, ret_manifest);
        tr_writer_deinit(&writer);
        return r;
}

START_TEST(message_pack_is_read_the_same) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        int r = parse_notation("{'name':#6e,'module':nil,'concurrency':2.0,'entity':[],'replicas':[{'instance':nil}],'operations':"
                               "{'o':[],'p':{'input':[],'output':nil,'errors':[],'doc':'d'},#71:{'timeout':5.0}},"
                               "'process':{'command':[#63,'d'],'env':[],'cwd':'/w'}}",
                               &problem, &manifest);

        ck_assert_msg(r == 0, "%s %s", problem.path, problem.reason);
        ck_assert_str_eq(manifest->name, "n");
        ck_assert_ptr_null(manifest->module);
        ck_assert_ptr_nonnull(manifest->entity);
        ck_assert_uint_eq(manifest->concurrency, 2);
        ck_assert_uint_eq(manifest->operations_count, 3);
        ck_assert_ptr_nonnull(operation(manifest, "p")->input);
        ck_assert_ptr_null(operation(manifest, "p")->output);
        ck_assert_uint_eq(operation(manifest, "q")->timeout_ms, 5);
        ck_assert_str_eq(manifest->process->command[0], "c");
        tr_manifest_unref(manifest);
}
END_TEST

static const struct {
        const char *text, *path, *reason;
        int answer;
} refusals[] = {
        { "5", "", "must be an object", TR_MANIFEST_WRONG },
        { "[]", "/name", "is missing", TR_MANIFEST_WRONG },
        { "{'name':'n','operations':[]}", "/operations", "must have 1 to 4096 operations", TR_MANIFEST_WRONG },
        { "{'name':nil,'operations':{'o':{}}}", "/name", "is missing", TR_MANIFEST_WRONG },
        { "{'name':'n','operations':{'o':nil}}", "/operations/o", "must be an object", TR_MANIFEST_WRONG },
        { "{'name':'n','operations':{'o':{'input':{'typ':1}}}}", "/operations/o/input/typ", NULL, TR_MANIFEST_WRONG },
        { "{'name':'n','operations':{'o':{}},'process':{'command':['c'],'cwd':'w'}}", "/process/cwd",
          "must be an absolute path", TR_MANIFEST_WRONG },
        { "{'name':'n','name':'m'}", "/name", "is there twice", TR_MANIFEST_NO_JSON },
        { "{'name':'n',1:2}", "", "has a key that is no text", TR_MANIFEST_NO_JSON },
        { "{'name':#ff}", "/name", "is bytes, and no text", TR_MANIFEST_NO_JSON },
        { "{'replicas':[{'args':!-1#00000000}]}", "/replicas/0/args", "is a value that JSON does not have",
          TR_MANIFEST_NO_JSON },
        { "{'a/b':{#ff:1}}", "/a~1b", "has a key that is no text", TR_MANIFEST_NO_JSON },
        { "{#610062:1}", "/a?b", "has a NUL in its key", TR_MANIFEST_NO_JSON },
};

START_TEST(what_is_no_manifest_is_refused) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;

        ck_assert_int_eq(parse_notation(refusals[_i].text, &problem, &manifest), refusals[_i].answer);
        ck_assert_str_eq(problem.path, refusals[_i].path);
        if (refusals[_i].reason)
                ck_assert_str_eq(problem.reason, refusals[_i].reason);
        ck_assert_ptr_null(manifest);
        tr_manifest_problem_deinit(&problem);
}
END_TEST

static void assert_refused(struct tr_writer *writer, const char *path, const char *reason, int answer) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;

        ck_assert_int_eq(tr_manifest_parse(writer->data, writer->len, &problem, &manifest), answer);
        ck_assert_str_eq(problem.path, path);
        ck_assert_str_eq(problem.reason, reason);
        tr_manifest_problem_deinit(&problem);
        tr_writer_deinit(writer);
}

START_TEST(what_message_pack_may_hold_is_bounded) {
        struct tr_writer writer = TR_WRITER_INIT;

        tr_write_array(&writer, 70000);
        for (int i = 0; i < 70000; i++)
                tr_write_nil(&writer);
        assert_refused(&writer, "/65535", "is one value too many", TR_MANIFEST_NO_JSON);

        for (int i = 0; i <= TR_NESTING_MAX; i++)
                tr_write_array(&writer, 1);
        tr_write_nil(&writer);
        {
                char path[2 * TR_NESTING_MAX + 1] = "";

                for (int i = 0; i < TR_NESTING_MAX; i++)
                        strcat(path, "/0");
                assert_refused(&writer, path, "is nested too deep", TR_MANIFEST_NO_JSON);
        }

        tr_write_map(&writer, 1);
        tr_write_text(&writer, "doc");
        tr_writer_reserve(&writer, TR_MANIFEST_BYTES_MAX + 16);
        memset(writer.data + writer.len, 'x', TR_MANIFEST_BYTES_MAX);
        tr_write_str(&writer, "x", 1);
        writer.len = TR_MANIFEST_BYTES_MAX + 1;
        assert_refused(&writer, "", "is larger than 1048576 bytes", TR_MANIFEST_WRONG);

        /* a number that is none */
        tr_write_map(&writer, 1);
        tr_write_text(&writer, "queue");
        tr_write_float(&writer, __builtin_inf());
        assert_refused(&writer, "/queue", "is no finite number", TR_MANIFEST_NO_JSON);
        /* what the scanner never lets through */
        tr_write_uint(&writer, UINT64_MAX);
        assert_refused(&writer, "", "is an integer above 2^63-1", TR_MANIFEST_NO_JSON);
        tr_write_array(&writer, 2);
        tr_write_nil(&writer);
        assert_refused(&writer, "/1", "is not whole", TR_MANIFEST_NO_JSON);
}
END_TEST

/* The installed schema */

static json_t *schema_json(void) {
        const char *source = getenv("TROUPE_SOURCE");
        char path[4096];
        json_error_t error;
        json_t *json;

        snprintf(path, sizeof(path), "%s/conf/component.schema.json", source ? source : ".");
        json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(json, "%s:%d: %s", path, error.line, error.text);
        return json;
}

static bool schema_accepts(const struct tr_schema *schema, const char *text) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct tr_schema_violation violation = { 0 };
        json_t *json = parse(text);
        int r;

        ck_assert_int_eq(tr_json_pack(&writer, json), 0);
        r = tr_schema_check(schema, writer.data, writer.len, &violation);
        ck_assert_int_ge(r, 0);
        if (r == 0)
                ck_assert(!violation.path);
        tr_schema_violation_deinit(&violation);
        tr_writer_deinit(&writer);
        json_decref(json);
        return r == 0;
}

START_TEST(the_schema_says_the_same) {
        struct tr_schema_problem problem = { 0 };
        struct tr_schema *schema = NULL;
        json_t *json = schema_json();
        int r = tr_schema_compile(json, &schema, &problem);

        ck_assert_msg(r == 0, "%s %s", problem.path, problem.reason);
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                tr_manifest_unref(read_text(good[i]));
                ck_assert_msg(schema_accepts(schema, good[i]), "%s", good[i]);
        }
        for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
                ck_assert_msg(schema_accepts(schema, mistakes[i].text) == mistakes[i].beyond_schema, "%s", mistakes[i].text);
        tr_schema_unref(schema);
        json_decref(json);
}
END_TEST

/* The whole manifest has every key that the schema has, and each is described. */
static void assert_keys(json_t *properties, json_t *object) {
        const char *key;
        json_t *property;

        ck_assert_uint_gt(json_object_size(properties), 0);
        json_object_foreach(properties, key, property) {
                ck_assert_msg(json_object_get(object, key), "%s is in the schema, and not in the test", key);
                ck_assert_msg(json_is_string(json_object_get(property, "description")), "%s is not described", key);
        }
}

START_TEST(the_schema_has_every_key) {
        json_t *schema = schema_json(), *manifest = parse(whole), *properties = json_object_get(schema, "properties");
        json_t *process = json_object_get(properties, "process"), *operations = json_object_get(properties, "operations");
        json_t *all = json_object(), *one;
        const char *name;

        assert_keys(properties, manifest);
        assert_keys(json_object_get(process, "properties"), json_object_get(manifest, "process"));
        json_object_foreach(json_object_get(manifest, "operations"), name, one)
                json_object_update(all, one);
        assert_keys(json_object_get(json_object_get(operations, "additionalProperties"), "properties"), all);
        json_decref(all);
        json_decref(manifest);
        json_decref(schema);
}
END_TEST

/* Memory */

START_TEST(want_of_memory_is_an_error_and_nothing_else) {
        static const char *const texts[] = { whole, "[]", OPERATION("\"input\": {\"typ\": 1}") };

        tr_log_set_level(TR_LOG_ERROR);
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                json_t *json = parse(texts[i]);
                long after = 0;

                do {
                        struct tr_manifest_problem problem = { 0 };
                        struct tr_manifest *manifest = NULL;
                        int r;

                        failing_arm(++after);
                        r = tr_manifest_read(json, "/folder", &problem, &manifest);
                        failing_arm(0);
                        ck_assert_int_eq(r, failing_hit() ? -ENOMEM : i == 0 ? 0 : TR_MANIFEST_WRONG);
                        ck_assert((manifest != NULL) == (r == 0));
                        ck_assert((problem.reason != NULL) == (r == TR_MANIFEST_WRONG));
                        tr_manifest_problem_deinit(&problem);
                        tr_manifest_unref(manifest);
                } while (failing_hit());
                json_decref(json);
                ck_assert_int_gt(after, 1);
        }
}
END_TEST

START_TEST(want_of_memory_for_message_pack) {
        static const char *const texts[] = { "{'name':'n','operations':{'o':[]}}", "{'name':'n','a':{'name':1,'name':2}}" };

        tr_log_set_level(TR_LOG_ERROR);
        for (size_t i = 0; i < 2; i++) {
                struct tr_writer writer = TR_WRITER_INIT;
                long after = 0;

                notation_write(&writer, texts[i]);
                do {
                        struct tr_manifest_problem problem = { 0 };
                        struct tr_manifest *manifest = NULL;
                        int r;

                        failing_arm(++after);
                        r = tr_manifest_parse(writer.data, writer.len, &problem, &manifest);
                        failing_arm(0);
                        ck_assert_int_eq(r, failing_hit() ? -ENOMEM : i == 0 ? 0 : TR_MANIFEST_NO_JSON);
                        tr_manifest_problem_deinit(&problem);
                        tr_manifest_unref(manifest);
                } while (failing_hit());
                tr_writer_deinit(&writer);
                /* (of the second, libraries make all that is made) */
                ck_assert(after > 1 || i == 1);
        }
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))

int main(void) {
        Suite *suite = suite_create("manifest");
        TCase *tests = tcase_create("manifest");
        SRunner *runner;
        int failed;

        tcase_set_timeout(tests, SUITE_TIMEOUT_S);
        tcase_add_test(tests, every_key_is_read);
        tcase_add_test(tests, what_is_not_given_has_its_default);
        tcase_add_test(tests, operations_are_found_by_name);
        tcase_add_test(tests, the_hash_is_of_what_it_says);
        tcase_add_loop_test(tests, a_mistake_has_its_place, 0, COUNT(mistakes));
        tcase_add_test(tests, there_are_bounds);
        tcase_add_test(tests, message_pack_is_read_the_same);
        tcase_add_loop_test(tests, what_is_no_manifest_is_refused, 0, COUNT(refusals));
        tcase_add_test(tests, what_message_pack_may_hold_is_bounded);
        tcase_add_test(tests, the_schema_says_the_same);
        tcase_add_test(tests, the_schema_has_every_key);
        tcase_add_test(tests, want_of_memory_is_an_error_and_nothing_else);
        tcase_add_test(tests, want_of_memory_for_message_pack);
        suite_add_tcase(suite, tests);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
