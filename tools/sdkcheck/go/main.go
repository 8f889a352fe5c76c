// Command go checks rendered messages with Anthropic's official SDK for Go, in both ways in which a program
// can pass messages that are JSON:
//
//   - as param.Override: the request that the SDK makes has the same JSON, token by token, with
//     numbers as they were written, and members in their order, also those that repeat;
//   - decoded into the SDK's types: the request has the same values. Numbers of a tool's
//     arguments are a float64 in between, so those beyond one cannot be sent so, and are
//     counted.
//
// It reads the output of the program in the folder above.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

const shown = 20

// wrong are messages of which the types must be found to lose a part.
var wrong = []string{
	`{"role":"user","content":[{"type":"text","text":"x","more":1}]}`,
	`{"role":"user","content":[{"type":"none","text":"x"}]}`,
	`{"system":[{"type":"text","text":1}]}`,
}

func main() {
	for _, line := range wrong {
		if asTypes([]byte(line)) == nil {
			fmt.Fprintln(os.Stderr, "the types take", line)
			os.Exit(1)
		}
	}
	if sameTokens([]byte(`{"n":1,"a":"<"}`), []byte(`{"n":1.0,"a":"<"}`)) == nil {
		fmt.Fprintln(os.Stderr, "1 is taken for 1.0")
		os.Exit(1)
	}
	checked, beyond, failed, err := check(os.Stdin)
	fmt.Printf("anthropic: %d messages\n", checked)
	fmt.Printf("of these, %d have numbers that only an override keeps\n", beyond)
	fmt.Printf("%d not of their type\n", failed)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || failed > 0 || checked == 0 {
		os.Exit(1)
	}
}

func check(in io.Reader) (checked, beyond, failed int, err error) {
	rows := json.NewDecoder(bufio.NewReader(in))
	for {
		var row struct{ Format, Source, Line string }
		if err := rows.Decode(&row); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return checked, beyond, failed, err
		}
		if row.Format != "anthropic" {
			continue
		}
		checked++
		line := []byte(row.Line)
		fault := asOverride(line)
		if fault == nil && json.Unmarshal(line, new(any)) != nil {
			beyond++ // a number in it does not fit a float64
		} else if fault == nil {
			fault = asTypes(line)
		}
		if fault != nil {
			failed++
			if failed <= shown {
				fmt.Fprintf(os.Stderr, "%s: %.300s\n    %.600s\n", row.Source, line, fault)
			}
		}
	}
}

// asOverride passes a message's bytes to the SDK.
func asOverride(line []byte) error {
	var params anthropic.MessageNewParams
	var want json.RawMessage = line
	if system, ok := systemOf(line); ok {
		var blocks []json.RawMessage
		if err := json.Unmarshal(system, &blocks); err != nil {
			return err
		}
		want = system
		for _, b := range blocks {
			params.System = append(params.System, param.Override[anthropic.TextBlockParam](b))
		}
	} else {
		params.Messages = []anthropic.MessageParam{param.Override[anthropic.MessageParam](want)}
	}
	sent, err := requestOf(params)
	if err != nil {
		return err
	}
	return sameTokens(sent, want)
}

// asTypes decodes a message into the SDK's types.
func asTypes(line []byte) error {
	var params anthropic.MessageNewParams
	want := json.RawMessage(line)
	var err error
	if system, ok := systemOf(line); ok {
		want = system
		err = json.Unmarshal(system, &params.System)
	} else {
		params.Messages = make([]anthropic.MessageParam, 1)
		err = json.Unmarshal(line, &params.Messages[0])
	}
	if err != nil {
		return err
	}
	sent, err := requestOf(params)
	if err != nil {
		return err
	}
	var got, wanted any
	if err := errors.Join(json.Unmarshal(sent, &got), json.Unmarshal(want, &wanted)); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, wanted) {
		return fmt.Errorf("would be sent as %s", sent)
	}
	return nil
}

// systemOf is the system prompt if the line is one.
func systemOf(line []byte) (json.RawMessage, bool) {
	var m struct{ System json.RawMessage }
	if json.Unmarshal(line, &m) != nil || m.System == nil {
		return nil, false
	}
	return m.System, true
}

// requestOf is the system prompt or the only message in the request that the SDK would send.
func requestOf(params anthropic.MessageNewParams) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	var sent struct {
		System   json.RawMessage
		Messages []json.RawMessage
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	if len(sent.Messages) == 1 {
		return sent.Messages[0], nil
	}
	return sent.System, nil
}

// sameTokens compares JSON token by token, however strings are escaped.
func sameTokens(got, want []byte) error {
	g, w := json.NewDecoder(bytes.NewReader(got)), json.NewDecoder(bytes.NewReader(want))
	g.UseNumber()
	w.UseNumber()
	for {
		a, errA := g.Token()
		b, errB := w.Token()
		if errors.Is(errA, io.EOF) && errors.Is(errB, io.EOF) {
			return nil
		}
		if errA != nil || errB != nil || a != b {
			return fmt.Errorf("%v became %v at byte %d: %w", b, a, w.InputOffset(), errors.Join(errA, errB))
		}
	}
}
