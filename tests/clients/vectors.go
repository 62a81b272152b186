// SPDX-License-Identifier: Apache-2.0
// The client in examples/ over the vectors, at the end of its main(): test_vectors_by_hand.py says how it is talked to.
package main

import "bufio"
import "encoding/hex"
import "fmt"
import "log"
import "os"
import "strings"
import "github.com/ugorji/go/codec"

func vectors(request func(int, string, ...interface{}) interface{}) {
	handle := &codec.MsgpackHandle{WriteExt: true}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var value interface{}
		var answer []byte
		words := strings.Fields(lines.Text())
		data, err := hex.DecodeString(words[2])
		if err == nil {
			err = codec.NewDecoderBytes(data, handle).Decode(&value)
		}
		if err != nil {
			log.Fatal(err)
		}
		codec.NewEncoderBytes(&answer, handle).MustEncode(request(5, "ask", words[0], words[1], []interface{}{value}))
		fmt.Println(hex.EncodeToString(answer))
	}
}
