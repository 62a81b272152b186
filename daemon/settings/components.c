/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `components` is read in two steps: the list with the configuration that it is in, the files that it names behind that. A folder
 * is all files in it that end in ".json", by name; the one that is looked in by default may be missing.
 */
#include "config.h"

#include "daemon/settings/components.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/settings/keys.h"
#include "daemon/settings/source.h"

#define FOLDER_DEFAULT "components.d"

void tr_settings_sources_deinit(struct tr_settings_sources *sources) {
        for (size_t i = 0; i < sources->count; i++) {
                free(sources->list[i].path);
                tr_manifest_unref(sources->list[i].manifest);
        }
        free(sources->list);
        *sources = (struct tr_settings_sources){ 0 };
}

void tr_components_deinit_settings(struct tr_settings_components *components) {
        for (size_t i = 0; i < components->count; i++) {
                tr_manifest_unref(components->list[i].manifest);
                free(components->list[i].file);
        }
        free(components->list);
        *components = (struct tr_settings_components){ 0 };
}

/* The list */

/* A manifest that stands in the configuration. */
static void read_manifest(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                          struct tr_settings_source *source) {
        struct tr_manifest_problem problem = { 0 };
        TR_AUTO_FREE char *key = tr_place_text(place);
        int r = tr_manifest_read(value, reader->folder, &problem, &source->manifest);
        char *where = NULL;

        if (r == TR_MANIFEST_WRONG) {
                int line = tr_place_line_below(place, value, problem.path, reader->text, reader->len);

                if (!key || asprintf(&where, "%s%s", key, problem.path) < 0)
                        r = tr_error_origin(-ENOMEM);
                else
                        r = tr_problems_add(reader->problems, reader->file, line, where, "%s", problem.reason);
                tr_manifest_problem_deinit(&problem);
        }
        if (r < 0)
                tr_reader_no_memory(reader);
}

static void read_path(struct tr_json_reader *reader, const char *text, struct tr_settings_source *source) {
        if (*text == '/' || !reader->folder)
                source->path = strdup(text);
        else if (asprintf(&source->path, "%s/%s", reader->folder, text) < 0)
                source->path = NULL;
        if (!source->path)
                tr_reader_no_memory(reader);
}

void tr_read_components(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                        void *field) {
        struct tr_settings_sources sources = { 0 };
        json_t *element;
        size_t i;

        if (!json_is_array(value)) {
                tr_reader_problem(reader, place, "must be a list");
                return;
        }
        sources.list = calloc(json_array_size(value) + 1, sizeof(*sources.list));
        if (!sources.list) {
                tr_reader_no_memory(reader);
                return;
        }
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };
                struct tr_settings_source *source = &sources.list[sources.count++];
                const char *text = json_string_value(element);

                source->line = tr_place_line(&inner, reader->text, reader->len);
                if (json_is_object(element))
                        read_manifest(reader, &inner, element, source);
                else if (text && *text && strlen(text) == json_string_length(element))
                        read_path(reader, text, source);
                else
                        tr_reader_problem(reader, &inner, "must be a folder, a file, or a manifest");
        }
        tr_settings_sources_deinit(field);
        *(struct tr_settings_sources *)field = sources;
}

int tr_components_place(struct tr_settings_sources *sources, const char *folder) {
        for (size_t i = 0; i < sources->count; i++) {
                char *path = sources->list[i].path, *whole;

                if (!path || *path == '/')
                        continue;
                if (asprintf(&whole, "%s/%s", folder, path) < 0)
                        return tr_error_origin(-ENOMEM);
                free(path);
                sources->list[i].path = whole;
        }
        return 0;
}

/* The files */

struct reading {
        struct tr_settings *settings;
        struct tr_problems *problems;
};

/* A place of a manifest: in a file of its own, or in an element of the configuration's list. */
struct origin {
        const char *file;
        const char *element; /* "" or "components[2]" */
        int line;            /* of that; a file's own are looked for */
        json_t *document;    /* of a file, where it is one; else NULL */
        const struct tr_source *source;
};

/* Tells what is wrong there, `pointer` in the manifest. 0 or -ENOMEM. */
static int tell(struct reading *reading, const struct origin *origin, const char *pointer, const char *reason) {
        int line = origin->line;
        char *key = NULL;

        if (origin->document)
                line = tr_place_line_below(NULL, origin->document, pointer, origin->source->text, origin->source->len);
        if ((*origin->element || *pointer) && asprintf(&key, "%s%s", origin->element, pointer) < 0)
                return tr_error_origin(-ENOMEM);
        return tr_error_fold(tr_problems_add(reading->problems, origin->file, line, key, "%s", reason));
}

static const struct tr_settings_component *find(const struct tr_settings_components *components, const char *name) {
        for (size_t i = 0; i < components->count; i++)
                if (strcmp(components->list[i].manifest->name, name) == 0)
                        return &components->list[i];
        return NULL;
}

/* What a manifest does not know of itself. 0, or -ENOMEM. */
static int check(struct reading *reading, const struct tr_manifest *manifest, const struct origin *origin) {
        const struct tr_settings_component *other = find(&reading->settings->components, manifest->name);

        if (other) {
                TR_AUTO_FREE char *reason = NULL;

                if (asprintf(&reason, "is the name of the component in %s already", other->file) < 0) {
                        reason = NULL;
                        return tr_error_origin(-ENOMEM);
                }
                return tell(reading, origin, "/name", reason);
        }
        if (manifest->heap_bytes > reading->settings->limits.heap_max_bytes)
                return tell(reading, origin, "/heap", "is above limits.heap_max");
        return 0;
}

/* Takes a reference of its own. 0 or -ENOMEM. */
static int add(struct reading *reading, struct tr_manifest *manifest, const struct origin *origin) {
        struct tr_settings_components *components = &reading->settings->components;
        struct tr_settings_component *list;
        char *copy;
        int r = check(reading, manifest, origin);

        if (r < 0)
                return r;
        list = reallocarray(components->list, components->count + 1, sizeof(*list));
        if (!list)
                return tr_error_origin(-ENOMEM);
        components->list = list;
        copy = strdup(origin->file);
        if (!copy)
                return tr_error_origin(-ENOMEM);
        list[components->count++] = (struct tr_settings_component){ .manifest = tr_manifest_ref(manifest), .file = copy };
        return 0;
}

static int read_document(struct reading *reading, const char *file, const struct tr_source *source) {
        TR_CLEANUP(tr_manifest_unref_cleanup_) struct tr_manifest *manifest = NULL;
        TR_AUTO_FREE char *copy = strdup(file);
        struct origin origin = { .file = file, .element = "", .source = source };
        struct tr_manifest_problem problem = { 0 };
        int r;

        if (!copy)
                return tr_error_origin(-ENOMEM);
        r = tr_source_parse(file, source->text, source->len, reading->problems, &origin.document);
        if (r != 0)
                return r < 0 ? tr_error_fold(r) : 0;
        r = tr_manifest_read(origin.document, dirname(copy), &problem, &manifest);
        if (r == TR_MANIFEST_WRONG)
                r = tell(reading, &origin, problem.path, problem.reason);
        else if (r == 0)
                r = add(reading, manifest, &origin);
        tr_manifest_problem_deinit(&problem);
        json_decref(origin.document);
        return tr_error_fold(r);
}

static int read_file(struct reading *reading, const char *file) {
        const struct origin origin = { .file = file, .element = "" };
        struct tr_source source;
        int r = tr_source_read(file, &source);

        if (r < 0)
                return tr_error_fold(r);
        if (r > 0)
                return tell(reading, &origin, "", source.reason);
        r = read_document(reading, file, &source);
        tr_source_deinit(&source);
        return r;
}

static int is_manifest(const struct dirent *entry) {
        size_t len = strlen(entry->d_name);

        return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

static int by_name(const struct dirent **one, const struct dirent **other) {
        return strcmp((*one)->d_name, (*other)->d_name);
}

static int read_folder(struct reading *reading, const char *folder) {
        const struct origin origin = { .file = folder, .element = "" };
        struct dirent **entries;
        int count = scandir(folder, &entries, is_manifest, by_name), r = 0;

        if (count < 0 && errno == ENOMEM)
                return tr_error_origin(-ENOMEM);
        if (count < 0)
                return tell(reading, &origin, "", strerrordesc_np(errno));
        for (int i = 0; i < count; i++) {
                TR_AUTO_FREE char *file = NULL;

                if (r == 0 && asprintf(&file, "%s/%s", folder, entries[i]->d_name) < 0) {
                        file = NULL;
                        r = tr_error_origin(-ENOMEM);
                }
                if (r == 0)
                        r = read_file(reading, file);
                free(entries[i]);
        }
        free(entries);
        return r;
}

static bool is_default(const char *path) {
        const char *slash = strrchr(path, '/');

        return strcmp(slash ? slash + 1 : path, FOLDER_DEFAULT) == 0;
}

/* An element of the list, by its place in that. */
static int read_element(struct reading *reading, size_t index) {
        const struct tr_settings_source *source = &reading->settings->sources.list[index];
        const char *file = reading->settings->file, *path = source->path;
        char element[48] = "";
        const struct origin origin = { .file = file ? file : path, .element = element, .line = source->line };
        TR_AUTO_FREE char *reason = NULL;
        struct stat status;

        if (file)
                snprintf(element, sizeof(element), "components[%zu]", index);
        if (source->manifest)
                return add(reading, source->manifest, &origin);
        if (!path)
                return 0; /* what is wrong with it was told */
        if (stat(path, &status) == 0)
                return S_ISDIR(status.st_mode) ? read_folder(reading, path) : read_file(reading, path);
        if (errno == ENOENT && is_default(path))
                return 0;
        if (asprintf(&reason, "%s: %s", path, strerrordesc_np(errno)) < 0) {
                reason = NULL;
                return tr_error_origin(-ENOMEM);
        }
        return tell(reading, &origin, "", reason);
}

int tr_components_read(struct tr_settings *settings, struct tr_problems *problems) {
        struct reading reading = { .settings = settings, .problems = problems };
        int r = 0;

        for (size_t i = 0; r == 0 && i < settings->sources.count; i++)
                r = read_element(&reading, i);
        return r;
}
