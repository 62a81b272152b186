/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_LIMITS_H
#define TR_PROTO_LIMITS_H

/*
 * Bounds of the wire that both sides keep, and that a configuration may not
 * raise. What a configuration may set has its default in daemon/settings.
 */

/* What hello says: the protocol's version. */
#define TR_PROTOCOL_VERSION 1
/* Bytes of a name: published, component, operation, instance, module, class. */
#define TR_NAME_MAX 128
/* Containers inside each other; one that is itself an argument is level 1. */
#define TR_NESTING_MAX 128
/* Bytes of one frame unless configured otherwise (limits.frame). */
#define TR_FRAME_DEFAULT (16u << 20)
/* Bytes of an actor's heap at least: what a VM needs to begin with, and some. */
#define TR_HEAP_MIN (64u << 10)
/* Containers a frame adds around an argument: the frame, params, args. */
#define TR_FRAME_WRAPPING 3

#endif
