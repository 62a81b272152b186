// SPDX-License-Identifier: Apache-2.0

// Drives Go's net/rpc with the codec of github.com/ugorji/go/codec (see stock.py). The package has no way to be sent anything unasked.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"net/rpc"
	"os"

	"github.com/ugorji/go/codec"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var handle codec.MsgpackHandle
	handle.WriteExt = true // the MessagePack of today, which has bin

	conn, err := net.Dial("unix", os.Args[1])
	check(err)
	client := rpc.NewClientWithCodec(codec.MsgpackSpecRpc.ClientCodec(conn, &handle))

	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		frame, err := hex.DecodeString(line[:len(line)-1])
		check(err)
		var command []interface{}
		check(codec.NewDecoderBytes(frame, &handle).Decode(&command))

		var result interface{}
		params := codec.MsgpackSpecRpcMultiArgs(command[2].([]interface{}))
		call := client.Go(command[1].(string), params, &result, nil)
		answer := []interface{}{"sent"}
		if command[0] == "request" {
			<-call.Done
			answer = []interface{}{"result", result}
			if call.Error != nil {
				answer = []interface{}{"error", call.Error.Error()}
			}
		}
		var out []byte
		check(codec.NewEncoderBytes(&out, &handle).Encode(answer))
		fmt.Println(hex.EncodeToString(out))
	}
}
