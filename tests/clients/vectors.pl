# SPDX-License-Identifier: Apache-2.0
# The client in examples/ over the vectors: test_vectors_by_hand.py says how it is talked to.
use strict;
use warnings;

my $client = shift @ARGV;
local $| = 1;
do $client or die $@ || "$client: $!\n";

while (my $line = <STDIN>) {
    my ($target, $handler, $value) = split " ", $line;
    my $answer = request(5, "ask", $target, $handler, [Data::MessagePack->unpack(pack "H*", $value)]);
    print unpack("H*", Data::MessagePack->pack($answer)), "\n";
}
