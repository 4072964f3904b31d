// Package livecmd adds the commands live and agree, and explore --live, to the command line of
// Lockstep. A program that calls locktest.Main imports it for that effect. It has no effect on
// systems other than Linux.
package livecmd
