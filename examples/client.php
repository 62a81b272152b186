<?php
// SPDX-License-Identifier: Apache-2.0
// Spawns a counter (or the actor that is named), tells it twice, asks it once and prints 3; or what was refused.
function fail($message)
{
    fwrite(STDERR, "$message\n");
    exit(1);
}

$daemon = stream_socket_client("unix://" . getenv("TROUPE_SOCKET")) or exit(1);
$answers = new MessagePackUnpacker();

function request($msgid, $method, ...$params)
{
    global $daemon, $answers;
    fwrite($daemon, msgpack_pack([0, $msgid, $method, $params]));
    while (!$answers->execute()) {
        strlen($bytes = fread($daemon, 65536)) or fail("the daemon closed the connection");
        $answers->feed($bytes);
    }
    [, , $error, $result] = $answers->data();
    $answers->reset();
    return $error ? fail("$method: $error[code]: $error[message]") : $result;
}

request(0, "hello", ["errors" => "map"]);
$counter = request(1, "spawn", $argv[1] ?? "counter", []);
request(2, "send", $counter, "bump", [2]);
request(3, "send", $counter, "bump", []);
echo request(4, "ask", $counter, "total", []), "\n";
