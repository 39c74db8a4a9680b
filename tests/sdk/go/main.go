// Runs operations on azservicebus: each line of standard input asks for one, each line of output tells how it went.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	_ "partitionedqueue/sdk/administration"
	_ "partitionedqueue/sdk/operations"
	"partitionedqueue/sdk/place"
)

type asked struct {
	Operation string     `json:"operation"`
	Place     place.Told `json:"place"`
}

type told struct {
	Outcome string  `json:"outcome"`
	Said    string  `json:"said"`
	Seconds float64 `json:"seconds"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var one asked
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			panic(err)
		}
		if err := answers.Encode(done(one)); err != nil {
			panic(err)
		}
	}
}

func done(one asked) (answer told) {
	began := time.Now()
	at := place.New(one.Place)
	answer.Outcome = "passed"
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case place.AbsentFromSdk:
			answer.Outcome, answer.Said = "absent", string(failure)
		default:
			answer.Outcome, answer.Said = "failed", fmt.Sprintf("%v\n%s", failure, debug.Stack())
		}
		at.Close()
		answer.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	}()
	operation, known := place.Operations[one.Operation]
	if !known {
		panic(fmt.Sprintf("there is no operation %q", one.Operation))
	}
	operation(at)
	return answer
}
