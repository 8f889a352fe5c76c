// JSON by streams, YAML, the syntax of shells, encryption (age).
package main

import (
	"fmt"

	"filippo.io/age"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"
)

func init() {
	jsonv2.Unmarshal(nil, nil)
	jsonv2.Marshal(nil)
	jsontext.NewDecoder(nil).ReadToken()
	yaml.Unmarshal(nil, nil)
	yaml.Marshal(nil)
	syntax.NewParser().Parse(nil, "")
	identity, _ := age.GenerateX25519Identity()
	age.Encrypt(nil, identity.Recipient())
	fmt.Println(age.Decrypt(nil, identity))
}
