// Package livecmd gives the command line of Lockstep the commands live and agree, and explore
// --live. Import it for that effect into a program that calls locktest.Main. On other systems than
// Linux it has none.
package livecmd
