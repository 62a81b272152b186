#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Spawns a counter (or the actor that is named), tells it twice, asks it once and prints 3; or what was refused.
use strict;
use warnings;
use Data::MessagePack;
use Data::MessagePack::Stream;
use IO::Socket::UNIX;

my $daemon = IO::Socket::UNIX->new($ENV{TROUPE_SOCKET}) or die "$ENV{TROUPE_SOCKET}: $!\n";
my $answers = Data::MessagePack::Stream->new;

sub request {
    my ($msgid, $method, @params) = @_;
    $daemon->print(Data::MessagePack->pack([0, $msgid, $method, \@params]));
    until ($answers->next) {
        $daemon->sysread(my $bytes, 65536) or die "the daemon closed the connection\n";
        $answers->feed($bytes);
    }
    my (undef, undef, $error, $result) = @{ $answers->data };
    die "$method: $error->{code}: $error->{message}\n" if $error;
    return $result;
}

request(0, "hello", { errors => "map" });
my $counter = request(1, "spawn", $ARGV[0] // "counter", []);
request(2, "send", $counter, "bump", [2]);
request(3, "send", $counter, "bump", []);
print request(4, "ask", $counter, "total", []), "\n";
