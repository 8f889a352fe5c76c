// The vocabularies of OpenAI's tokenizers.
package main

import (
	"fmt"

	"github.com/contextd/contextd/internal/budget/bpe"
)

func init() { fmt.Println(bpe.Open("")) }
