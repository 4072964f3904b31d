package simrun

import (
	"path/filepath"
	"slices"

	"lockstep/explore"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// library is the release of the Java library that the reports of results are about.
const library = "4.7.0"

// tooLongLive are the built-in scenarios whose steps take an hour and 40 minutes, which the comparison
// of locks in Go leaves out.
var tooLongLive = []string{"never-unlocked", "inventory"}

// agreedPorts returns the built-in scenarios of the comparison of locks in Go, and their locks.
func agreedPorts() (names, locks []string) {
	all, err := scenarios.Builtin()
	if err != nil {
		panic("simrun: " + err.Error()) // they are a part of the program
	}
	for _, sc := range all {
		if slices.Contains(tooLongLive, sc.Name) {
			continue
		}
		names = append(names, sc.Name)
		for _, l := range sc.Locks {
			if !slices.Contains(locks, l) {
				locks = append(locks, l)
			}
		}
	}
	return names, locks
}

// peersTags are the tags of the stories of the locks in peers/. peersAgreementFile has the
// comparison of both worlds that plays them.
var peersTags = []string{"stories", "fenced", peersRecord}

const peersAgreementFile = "agreement-peers.md"

// liveParts lists the parts that are played on real servers in real time. They need programs
// that a machine may lack.
func (r *renewal) liveParts() []part {
	now := explore.CurrentVersions()
	var java, fair []string
	var releases []*subject.Subject // which java and fair stand for
	for _, l := range subject.All() {
		switch l.Family() {
		case "redisson":
			java, releases = append(java, libraryLock+"@"+l.Release), append(releases, l)
		case "redisson-fair":
			fair, releases = append(fair, libraryFairLock+"@"+l.Release), append(releases, l)
		}
	}
	java = append(java, fair...)
	builtin, ports := agreedPorts()
	var buggy []string
	for _, b := range subject.PlantedBugs() {
		buggy = append(buggy, subject.PlantedPrefix+b.Name)
	}
	agree := func(file, runs string, args, locks []string) func(*renewal) error {
		return func(r *renewal) error {
			args := append([]string{"agree"}, args...)
			for _, name := range locks {
				args = append(args, "--lock", name)
			}
			return r.command(append(args, "--runs", runs, "-o", filepath.Join(r.dir, file))...)
		}
	}
	all := []part{
		{name: "agreement", file: versionsFile, uses: now.Played(), locks: releases, live: java, write: agree("agreement.md", "2", nil, java)},
		{name: "agreement-ports", file: versionsFile, uses: now.Played(), live: ports, write: agree("agreement-ports.md", "1", builtin, nil)},
		{name: "agreement-planted", file: versionsFile, uses: now.Played(), live: buggy, write: agree("agreement-planted.md", "2", []string{"--planted"}, nil)},
		{name: "upstream", file: versionsFile, uses: upstreamVersions(), locks: releases, live: java, write: func(r *renewal) error {
			return r.command("upstream", "--release", library, "--runs", "2", "--out", filepath.Join(r.dir, "upstream"), "--results", r.dir)
		}},
	}
	unknown := false
	var tagged []string
	for _, tag := range peersTags {
		_, err := scenarios.Tagged(tag)
		unknown = unknown || err != nil
		tagged = append(tagged, "--tag", tag)
	}
	var locks []string
	for _, l := range PeersLocks {
		if l.Live && !unknown {
			locks = append(locks, l.Name)
		}
	}
	if absent := r.lacks(peersAgreementFile); !absent || !unknown {
		all = append(all, part{name: "agreement-peers", file: versionsFile, uses: now.Played(), live: locks, foreign: unknown, absent: absent,
			write: agree(peersAgreementFile, "1", append(tagged, "--jobs", "8"), nil)})
	}
	if absent := r.lacks(peersUpstream + ".md"); !absent || !unknown {
		all = append(all, part{name: peersUpstream, file: versionsFile, uses: upstreamVersions(), live: locks, foreign: unknown, absent: absent,
			write: func(r *renewal) error {
				return r.command("upstream", "--peers", "--runs", "3", "--tries", "3", "--out", filepath.Join(r.dir, peersUpstream), "--results", r.dir)
			}})
	}
	for i := range all {
		if locks, err := findLocks(all[i].live); err == nil && all[i].locks == nil { // another program may have them
			all[i].locks = locks
		}
	}
	return all
}

// lacks says why a part that is played live cannot be written on this machine; nil: it can, or is
// not played live.
func (p part) lacks() error {
	if p.live == nil {
		return nil
	}
	o, err := liveOptions("", "")
	if err != nil {
		return err
	}
	var locks []*subject.Subject
	for _, name := range p.live {
		l, err := subject.Find(name)
		if err != nil {
			return err
		}
		if !slices.Contains(locks, l) {
			locks = append(locks, l)
		}
	}
	return liveReady(locks, o)
}
