/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration is read in three layers: the defaults (JSON, like the file), what differs for a user's own daemon,
 * and the file. Each overwrites what it has. What belongs to more than one key is checked at the end.
 */
#include "config.h"

#include "daemon/settings/settings.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/settings/components.h"
#include "daemon/settings/keys.h"
#include "daemon/settings/scope.h"
#include "daemon/settings/source.h"

const char tr_settings_defaults[] =
        "{\n"
        "  \"socket\": {\"path\": \"/run/troupe/troupe.sock\", \"mode\": \"0660\", \"group\": \"troupe\"},\n"
        "  \"path\": [\"/etc/troupe/lua\", \"/usr/local/share/troupe/lua\", \"/usr/share/troupe/lua\"],\n"
        "  \"allow\": [\"files\"],\n"
        "  \"actors\": [],\n"
        "  \"pools\": [],\n"
        "  \"components\": [\"components.d\"],\n"
        "  \"access\": [],\n"
        "  \"store\": {\"path\": \"/var/lib/troupe/troupe.db\"},\n"
        "  \"limits\": {\n"
        "    \"actors\": 1024,\n"
        "    \"actors_per_user\": 512,\n"
        "    \"connections\": 4096,\n"
        "    \"connections_per_user\": 1024,\n"
        "    \"requests\": 65536,\n"
        "    \"frame\": \"16M\",\n"
        "    \"output\": \"64M\",\n"
        "    \"stalled\": \"30s\",\n"
        "    \"heap\": \"64M\",\n"
        "    \"heap_max\": \"1G\",\n"
        "    \"mailbox\": 65536,\n"
        "    \"mailbox_bytes\": \"64M\",\n"
        "    \"async\": 1024,\n"
        "    \"nesting\": 128,\n"
        "    \"queue\": 65536,\n"
        "    \"slow\": \"5s\",\n"
        "    \"memory\": null\n"
        "  },\n"
        "  \"log\": {\"level\": \"info\", \"format\": \"auto\"},\n"
        "  \"trace\": {\"file\": null},\n"
        "  \"metrics\": {\"path\": null, \"mode\": \"0660\", \"group\": \"troupe\"},\n"
        "  \"shutdown\": {\"grace\": \"10s\"}\n"
        "}\n";

static bool has(json_t *document, const char *object, const char *key) {
        return json_object_get(object ? json_object_get(document, object) : document, key);
}

/* Where two keys have to agree. */
static void check_heaps(struct tr_json_reader *reader, const struct tr_settings *settings) {
        struct tr_place limits = { .key = "limits" }, heap = { .parent = &limits, .key = "heap" };
        struct tr_place actors = { .key = "actors" };

        if (settings->limits.heap_bytes > settings->limits.heap_max_bytes)
                tr_reader_problem(reader, &heap, "is above limits.heap_max");
        for (size_t i = 0; i < settings->actors.count; i++) {
                struct tr_place actor = { .parent = &actors, .index = i }, own = { .parent = &actor, .key = "heap" };

                if (settings->actors.list[i].heap_bytes > settings->limits.heap_max_bytes)
                        tr_reader_problem(reader, &own, "is above limits.heap_max");
        }
}

static void read_document(struct tr_json_reader *reader, json_t *document, struct tr_settings *settings) {
        tr_read_keys(reader, NULL, document, tr_settings_keys, settings);
        check_heaps(reader, settings);
}

/* The defaults of the scope. 0 or a negative errno. */
static int read_defaults(struct tr_settings *settings, enum tr_settings_scope scope, struct tr_problems *problems,
                         json_t **ret_document) {
        struct tr_json_reader reader = {
                .file = "the defaults",
                .text = tr_settings_defaults,
                .len = sizeof(tr_settings_defaults) - 1,
                .problems = problems,
        };
        json_t *document = json_loadb(reader.text, reader.len, 0, NULL);

        if (!document)
                return tr_error_origin(-ENOMEM);
        read_document(&reader, document, settings);
        if (reader.error == 0 && scope == TR_SETTINGS_USER)
                reader.error = tr_scope_apply_user(settings);
        if (reader.error < 0) {
                json_decref(document);
                return tr_error_fold(reader.error);
        }
        *ret_document = document;
        return 0;
}

/* Over what is there. 0, TR_SETTINGS_WRONG, or a negative errno. */
static int read_text(struct tr_settings *settings, const char *file, const char *text, size_t len, json_t *defaults,
                     struct tr_problems *problems, struct tr_problems *notes) {
        TR_AUTO_FREE char *copy = strdup(file), *folder = NULL;
        struct tr_json_reader reader = {
                .file = file,
                .text = text,
                .len = len,
                .defaults = defaults,
                .problems = problems,
                .notes = notes,
        };
        const struct tr_place socket = { .key = "socket" }, group = { .parent = &socket, .key = "group" };
        const struct tr_place trace = { .key = "trace" }, trace_file = { .parent = &trace, .key = "file" };
        const struct tr_place store = { .key = "store" }, store_path = { .parent = &store, .key = "path" };
        json_t *document;
        int r;

        if (!copy)
                return tr_error_origin(-ENOMEM);
        folder = realpath(dirname(copy), NULL);
        if (!folder)
                return tr_error_origin(-errno);
        reader.folder = folder;
        r = tr_source_parse(file, text, len, problems, &document);
        if (r < 0)
                return tr_error_fold(r);
        if (r > 0)
                return TR_SETTINGS_WRONG;
        read_document(&reader, document, settings);
        settings->socket_group_line = has(document, "socket", "group") ? tr_place_line(&group, text, len) : 0;
        settings->store_path_line = has(document, "store", "path") ? tr_place_line(&store_path, text, len) : 0;
        settings->trace_file_line = settings->trace_file ? tr_place_line(&trace_file, text, len) : 0;
        settings->has_allow = has(document, NULL, "allow");
        settings->has_log_level = has(document, "log", "level");
        settings->has_log_format = has(document, "log", "format");
        json_decref(document);
        if (reader.error < 0)
                return tr_error_fold(reader.error);
        r = tr_components_place(&settings->sources, folder);
        if (r < 0)
                return tr_error_fold(r);
        return problems->count > 0 ? TR_SETTINGS_WRONG : 0;
}

/* `with_files`: those of components are read too, also where something else is wrong, so that all is told at once. */
static int parse(const char *file, const char *text, size_t len, enum tr_settings_scope scope, bool with_files,
                 struct tr_problems *problems, struct tr_problems *notes, struct tr_settings **ret_settings) {
        TR_CLEANUP(tr_settings_free_cleanup_) struct tr_settings *settings = calloc(1, sizeof(*settings));
        json_t *defaults;
        int r;

        if (!settings)
                return tr_error_origin(-ENOMEM);
        r = read_defaults(settings, scope, problems, &defaults);
        if (r < 0)
                return tr_error_fold(r);
        settings->file = strdup(file);
        r = settings->file ? read_text(settings, file, text, len, defaults, problems, notes) : tr_error_origin(-ENOMEM);
        json_decref(defaults);
        if (r >= 0 && with_files) {
                int components = tr_components_read(settings, problems);

                r = components < 0 ? tr_error_fold(components) : problems->count > 0 ? TR_SETTINGS_WRONG : 0;
        }
        if (r == 0)
                *ret_settings = tr_steal(settings);
        return r;
}

int tr_settings_parse(const char *file, const char *text, size_t len, enum tr_settings_scope scope,
                      struct tr_problems *problems, struct tr_problems *notes, struct tr_settings **ret_settings) {
        return parse(file, text, len, scope, false, problems, notes, ret_settings);
}

/* There is no configuration file, but there may be components beside where it would be. */
static int load_without_file(const char *name, enum tr_settings_scope scope, struct tr_problems *problems,
                             struct tr_settings **ret_settings) {
        TR_CLEANUP(tr_settings_free_cleanup_) struct tr_settings *settings = NULL;
        TR_AUTO_FREE char *folder = strdup(name);
        int r;

        if (!folder)
                return tr_error_origin(-ENOMEM);
        r = tr_settings_new(scope, problems, &settings);
        if (r == 0)
                r = tr_components_place(&settings->sources, dirname(folder));
        if (r == 0)
                r = tr_components_read(settings, problems);
        if (r < 0)
                return tr_error_fold(r);
        if (problems->count > 0)
                return TR_SETTINGS_WRONG;
        *ret_settings = tr_steal(settings);
        return 0;
}

int tr_settings_load(const char *file, enum tr_settings_scope scope, struct tr_problems *problems,
                     struct tr_problems *notes, struct tr_settings **ret_settings) {
        TR_AUTO_FREE char *usual = file ? NULL : tr_scope_configuration(scope);
        const char *name = file ? file : usual;
        struct tr_source source;
        int r;

        if (!name)
                return tr_error_origin(-ENOMEM);
        r = tr_source_read(name, &source);
        if (r < 0)
                return tr_error_fold(r);
        if (r == TR_SOURCE_MISSING && !file)
                return load_without_file(name, scope, problems, ret_settings);
        if (r > 0) {
                r = tr_problems_add(problems, name, 0, NULL, "%s", source.reason);
                return r < 0 ? tr_error_fold(r) : TR_SETTINGS_WRONG;
        }
        r = parse(name, source.text, source.len, scope, scope != TR_SETTINGS_PROGRAM, problems, notes, ret_settings);
        tr_source_deinit(&source);
        return r;
}

int tr_settings_new(enum tr_settings_scope scope, struct tr_problems *problems, struct tr_settings **ret_settings) {
        TR_CLEANUP(tr_settings_free_cleanup_) struct tr_settings *settings = calloc(1, sizeof(*settings));
        json_t *defaults;
        int r;

        if (!settings)
                return tr_error_origin(-ENOMEM);
        r = read_defaults(settings, scope, problems, &defaults);
        if (r < 0)
                return tr_error_fold(r);
        json_decref(defaults);
        *ret_settings = tr_steal(settings);
        return 0;
}

void tr_settings_free(struct tr_settings *settings) {
        if (!settings)
                return;
        free(settings->file);
        free(settings->socket_path);
        free(settings->socket_group);
        free(settings->store_path);
        free(settings->trace_file);
        tr_texts_free(settings->path);
        tr_settings_actors_deinit(&settings->actors);
        tr_settings_pools_deinit(&settings->pools);
        tr_settings_access_deinit(&settings->access);
        tr_settings_sources_deinit(&settings->sources);
        tr_components_deinit_settings(&settings->components);
        free(settings);
}
