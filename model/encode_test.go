package model

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// The test fills every field of an event, so a new field that the encoder does not know fails it.
func TestAnEventIsEncodedAsEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := rapid.Make[Event]().Draw(t, "event")
		want, err := json.Marshal(&event)
		if err != nil {
			t.Fatal(err)
		}
		var e encoder
		e.event(&event)
		if string(e.b) != string(want) {
			t.Errorf("got  %s\nwant %s", e.b, want)
		}
	})
	for _, text := range []string{"", "a<b>&c", "\u2028", "\xff", "\"\\\n\t\x00", "ä", "~ \x7f"} {
		want, _ := json.Marshal(text)
		var e encoder
		e.quote(text)
		if string(e.b) != string(want) {
			t.Errorf("%q: got %s, want %s", text, e.b, want)
		}
	}
}

func TestTheNameOfAThreadIsTakenApart(t *testing.T) {
	for name, want := range map[string]struct {
		process string
		number  int
	}{"a/1": {"a", 1}, "ab/12": {"ab", 12}, "a": {"", 0}, "": {"", 0}, "jhmnk/EtFvY6wUn7o4FBNA==": {"", 0}} {
		if process, number := ProcessOf(name), NumberOf(name); process != want.process || number != want.number {
			t.Errorf("%q: process %q, number %d; want %q, %d", name, process, number, want.process, want.number)
		}
	}
}
