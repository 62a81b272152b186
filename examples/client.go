// SPDX-License-Identifier: Apache-2.0
// Spawns a counter (or the actor that is named), tells it twice, asks it once and prints 3; or what was refused.
package main

import "log"
import "net"
import "os"
import "github.com/ugorji/go/codec"

func main() {
	daemon, err := net.Dial("unix", os.Getenv("TROUPE_SOCKET"))
	if err != nil {
		log.Fatal(err)
	}
	handle := &codec.MsgpackHandle{WriteExt: true}
	requests, answers := codec.NewEncoder(daemon, handle), codec.NewDecoder(daemon, handle)
	request := func(msgid int, method string, params ...interface{}) (result interface{}) {
		var refused map[string]interface{}
		requests.MustEncode([]interface{}{0, msgid, method, params})
		if answers.MustDecode(&[]interface{}{nil, nil, &refused, &result}); refused != nil {
			log.Fatalf("%s: %s: %s", method, refused["code"], refused["message"])
		}
		return result
	}
	request(0, "hello", map[string]string{"errors": "map"})
	counter := request(1, "spawn", append(os.Args, "counter")[1], []int{})
	request(2, "send", counter, "bump", []int{2})
	request(3, "send", counter, "bump", []int{})
	log.New(os.Stdout, "", 0).Println(request(4, "ask", counter, "total", []int{}))
}
