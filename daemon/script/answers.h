/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_ANSWERS_H
#define TR_SCRIPT_ANSWERS_H

#include "daemon/script/vm.h"

/* Settles the promise that an answer is for. Takes the answer. Outside of the VM's code. */
void tr_answered(struct tr_vm *vm, struct tr_answer *take_answer);

#endif
