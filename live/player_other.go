//go:build !linux

package live

import "lockstep/scenarios/play"

// Player returns the functions of this package for a program or a test that plays live; nil on a
// system other than Linux.
func Player() play.LivePlayer { return nil }
