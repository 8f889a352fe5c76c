// Expressions (CEL) and the validation of requests by them (protovalidate).
package main

import (
	"fmt"

	"buf.build/go/protovalidate"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func init() {
	validator, _ := protovalidate.New()
	fmt.Println(validator.Validate(&contextdv1.Event{}, protovalidate.WithFailFast()))
}
