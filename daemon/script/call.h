/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_CALL_H
#define TR_SCRIPT_CALL_H

#include "daemon/script/vm.h"

/* Runs a message that has begun, as far as it goes. Outside of the VM's code. */
void tr_call(struct tr_vm *vm, struct tr_message *message);

#endif
