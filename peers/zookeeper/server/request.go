package server

import (
	"encoding/binary"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"lockstep/sim"
)

// The types of requests.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opGetChildren     = 8
	opSync            = 9
	opPing            = 11
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opReconfig        = 16
	opCreateContainer = 19
	opCreateTTL       = 21
	opSetWatches      = 101
	opClose           = -11
	opError           = -1
)

var names = map[int32]string{
	opCreate: "CREATE", opDelete: "DELETE", opExists: "EXISTS", opGetData: "GETDATA", opSetData: "SETDATA", opGetACL: "GETACL", opSetACL: "SETACL",
	opGetChildren: "GETCHILDREN", opSync: "SYNC", opPing: "PING", opGetChildren2: "GETCHILDREN2", opCheck: "CHECK", opMulti: "MULTI", opCreate2: "CREATE2",
	opReconfig: "RECONFIG", opCreateContainer: "CREATECONTAINER", opCreateTTL: "CREATETTL", opSetWatches: "SETWATCHES", opClose: "CLOSE",
}

// Commands is sim.Parts.Commands.
func (*Server) Commands() []string { return commandNames }

// commandNames are the names of the requests that the server knows, in order.
var commandNames = slices.Sorted(slices.Values(append(slices.Collect(maps.Values(names)), connectName)))

const (
	connectName = "CONNECT"
	// brokenName is the name of bytes that are not a request.
	brokenName = "BROKEN"
)

const (
	maxFrame = 0xfffff // the default of jute.maxbuffer
	// connectSize is the length of the first request of a client. One more byte may say whether the
	// client accepts a read-only server.
	connectSize = 4 + 8 + 4 + 8 + 4 + 16
)

// Refusal is sim.Parts.Refusal. The protocol has no error with a text, nor an error that belongs
// to no request. Refusal sends half of a notification, so that the client gives the connection up.
func (*Server) Refusal(string) []byte {
	var w writer
	w.int32(-1)
	w.int64(-1)
	w.int32(0)
	return w.frame()
}

// Decode implements sim.Server. The words of a request are its name, its path and its whole
// frame.
func (*Server) Decode(text string) (r sim.Request, rest string, err error) {
	if len(text) < 4 {
		return r, text, sim.ErrUnfinished
	}
	size := int32(binary.BigEndian.Uint32([]byte(text)))
	if size < 0 || size >= maxFrame {
		return sim.Request{Name: brokenName, Marks: true}, "", nil
	}
	if len(text) < 4+int(size) {
		return r, text, sim.ErrUnfinished
	}
	frame, rest := text[4:4+size], text[4+size:]
	in := &reader{left: frame}
	in.int32() // skip the number of the request, which no record needs
	op := in.int32()
	switch name := names[op]; {
	case isConnect(frame):
		return sim.Request{Name: connectName, Words: []string{connectName, "", frame}, Abridged: true, Marks: true, Streams: true}, rest, nil
	case in.err != nil:
		return sim.Request{Name: brokenName, Marks: true}, rest, nil
	default:
		if name == "" {
			name = strconv.Itoa(int(op))
		}
		r = sim.Request{Name: name, Abridged: true, Marks: true, Words: []string{name, "", frame}}
	}
	if path, ok := shownPath(op, in); ok {
		r.Words[1], r.Shown = path, []string{path}
		r.Says = r.Name + " " + unique.ReplaceAllString(path, "$1…")
	}
	return r, rest, nil
}

// unique is the part of a path that makes it unique. People tell it apart by its beginning.
var unique = regexp.MustCompile("([0-9a-f]{6})[0-9a-f]{26,}")

// isConnect reports whether a frame is the first of a connection. It has version 0 of the protocol
// and a password of 16 bytes, whereas other requests begin with their number, which counts from 1.
func isConnect(frame string) bool {
	if len(frame) != connectSize && len(frame) != connectSize+1 {
		return false
	}
	in := &reader{left: frame}
	in.take(connectSize - 20)
	return frame[:4] == "\x00\x00\x00\x00" && in.int32() == 16
}

// shownPath returns the path that a request begins with.
func shownPath(op int32, in *reader) (path string, ok bool) {
	switch op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opExists, opGetData, opSetData, opGetACL, opSetACL, opGetChildren, opGetChildren2, opSync, opCheck:
		path = in.text()
		return path, in.err == nil
	}
	return "", false
}
