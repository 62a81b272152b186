<?php
// SPDX-License-Identifier: Apache-2.0
// The client in examples/ over the vectors: test_vectors_by_hand.py says how it is talked to.
[, $client] = $argv;
$argv = [$client];
require $client;

while (($line = fgets(STDIN)) !== false) {
    [$target, $handler, $value] = explode(" ", trim($line));
    $answer = request(5, "ask", $target, $handler, [msgpack_unpack(hex2bin($value))]);
    echo bin2hex(msgpack_pack($answer)), "\n";
}
