// The errors of Pebble (cockroachdb/errors), with gogo/protobuf and Sentry's client.
package main

import (
	"fmt"

	"github.com/cockroachdb/errors"
)

func init() {
	fmt.Println(errors.Newf(""), errors.Mark(nil, nil), errors.AssertionFailedf(""), errors.CombineErrors(nil, nil))
}
