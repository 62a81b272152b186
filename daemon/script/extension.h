/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_EXTENSION_H
#define TR_SCRIPT_EXTENSION_H

/*
 * The internal form: MessagePack with extension types for what only VMs say to each other. What is plain costs nothing
 * beyond its MessagePack; each of these stands only where it is needed.
 *
 * Containers (tables and byte buffers) are numbered from 0 as they begin. One that was written before is a reference to
 * its number. The reader keeps its containers only where the bytes begin with TR_EXT_SHARED.
 */
enum tr_extension {
        TR_EXT_SHARED = 64,    /* 1 byte, any: in front of everything, where references follow */
        TR_EXT_REFERENCE = 65, /* 4 bytes, big-endian: the number of a container that has begun before */
        TR_EXT_MARK = 66,      /* 1 byte, an enum tr_mark: of the array or map that follows */
        TR_EXT_CLASS = 67,     /* "module:Name": of the instance whose fields follow, a map */
        TR_EXT_NULL = 68,      /* 1 byte, any: null where a bare nil would be nil, outside of containers */
        TR_EXT_ERROR = 69,     /* 1 byte, any: the map that follows is an error table of the library */
        TR_EXT_BLOCK = 70, /* 4 bytes, big-endian: a byte buffer whose storage is that block of the message's cargo */
};

#endif
