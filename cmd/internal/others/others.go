// Package others names the locks of the program in peers/ to the programs of this module, which
// cannot import them.
package others

import (
	_ "embed" // the list
	"encoding/json"

	"lockstep/cli/frame"
)

// list has the locks as a frame.Other each. A test in peers/ compares it with the locks there.
//
//go:embed others.json
var list []byte

// Locks returns the locks of the program in peers/.
func Locks() (all []frame.Other) {
	if err := json.Unmarshal(list, &all); err != nil {
		panic("others: " + err.Error()) // it is a part of the program
	}
	return all
}
