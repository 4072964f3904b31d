// Package planted holds locks that are wrong on purpose: each is a faithful lock with one thing
// changed, and a judge must name that fault. They show how much a run without a finding is worth.
//
// Bugs is the table. A bug is in a script (an Edit of its text), in a choice of the release, or in
// the client: in its commands and their answers (Send), in its connections (Conn), or in its calls
// (Call). No lock knows of its bug: the change is made between the lock and its server, or between
// the lock and its caller.
package planted

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// Bug is one planted bug. Exactly one of Edit, Release, Send, Conn and Call is
// set.
type Bug struct {
	Name string
	Base string // the registry's name of the lock in which it is planted
	What string // what is wrong, in one sentence

	// Judge must name the bug when explore looks for it with these faults and this profile, within
	// Runs runs.
	Judge   string
	Faults  string // as for explore, "" for none
	Profile string
	Runs    int
	// Seed is the seed of a campaign whose first run shows the bug.
	Seed uint64

	Edit    *Edit
	Release func(*redisson.Release)
	// Send, Conn and Call are called once per client, so their results may keep state.
	Send func(next Sender) Sender
	Conn func() func(net.Conn) net.Conn
	Call func(lockimpl.Lock) lockimpl.Lock
}

// Edit changes the text of scripts.
type Edit struct {
	// Scripts names the scripts as the registry does: acquire, unlock, renew, leave,
	// force_unlock.
	Scripts []string
	// Old occurs once in each script that has it. New replaces it.
	Old, New string
}

// Command is a script on its way to the server.
type Command struct {
	Script string // its purpose, as in Edit.Scripts
	Keys   []string
	Args   []any
	// Attempt counts the commands with that script that one call has sent, from 1. It is 0
	// for a command that belongs to no call.
	Attempt int

	text, sha string // as the server gets it; only sha for EVALSHA
}

// Sender sends a command and returns the server's answer.
type Sender func(context.Context, Command) (any, error)

// Apply returns the texts that replace a lock's scripts. scripts maps the text of each script to
// its purpose. It fails if the edit does not fit: if no script has its text, or a script has it
// more than once.
func (e Edit) Apply(scripts map[string]string) (map[string]string, error) {
	edited := map[string]string{}
	for _, text := range slices.Sorted(maps.Keys(scripts)) {
		if !slices.Contains(e.Scripts, scripts[text]) {
			continue
		}
		switch n := strings.Count(text, e.Old); {
		case n > 1:
			return nil, fmt.Errorf("%q stands %d times in the script %s", e.Old, n, scripts[text])
		case n == 1:
			edited[text] = strings.Replace(text, e.Old, e.New, 1)
		}
	}
	if len(edited) == 0 {
		return nil, fmt.Errorf("%q stands in none of the scripts %s", e.Old, strings.Join(e.Scripts, ", "))
	}
	return edited, nil
}
