package server

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lockstep/sim"
)

// The calls of the protocol, which are the names of requests in a record. Each is a Request
// that has the fields named here beside Do.
const (
	// OpenSession has no field. The reply has Session and Lease.
	OpenSession = "OPEN_SESSION"
	// KeepAlive has Session, Epoch and Lost. The master answers when the lease of the session
	// is near its end, or at once if Lost. The reply has Lease, which counts from the answer,
	// and Held.
	KeepAlive = "KEEP_ALIVE"
	// CloseSession has Session and Epoch. It gives up the locks of the session.
	CloseSession = "CLOSE_SESSION"
	// Open has Session, Epoch, Lock and Delay. It makes the file of the lock if there is
	// none, with that lock-delay.
	Open = "OPEN"
	// Acquire has Session, Epoch, Lock, Number, Shared and Try. Unless it is a try, the master
	// answers when the session has the lock. The reply has Generation.
	Acquire = "ACQUIRE"
	// Release has Session, Epoch, Lock and Generation.
	Release = "RELEASE"
	// GetSequencer has Session, Epoch and Lock. The reply has Sequencer.
	GetSequencer = "GET_SEQUENCER"
	// CheckSequencer has Sequencer. It needs no session. The reply has Valid.
	CheckSequencer = "CHECK_SEQUENCER"
	// SetLockDelay has Session, Epoch, Lock and Delay.
	SetLockDelay = "SET_LOCK_DELAY"
)

var calls = []string{OpenSession, KeepAlive, CloseSession, Open, Acquire, Release, GetSequencer, CheckSequencer, SetLockDelay}

// The errors of replies.
const (
	// NotMaster: the replica is not the master. Master is the address of the master, as far
	// as the replica knows.
	NotMaster = "not_master"
	// WrongEpoch: the request is for an earlier master. Epoch is that of the present one.
	WrongEpoch = "wrong_epoch"
	// Expired: the session is gone.
	Expired = "expired"
	// Busy: the lock was not granted, and nothing is left behind.
	Busy = "busy"
	// NotHeld: the session does not have the lock, or not with that generation.
	NotHeld = "not_held"
	// Invalid: the request makes no sense. Nothing was done.
	Invalid = "invalid"
	// Refused stands for any other failure, which a fault invents.
	Refused = "refused"
)

// MaxLockDelay is the longest lock-delay (Burrows 2006, section 2.4).
const MaxLockDelay = time.Minute

// Sequencer describes a lock as it was when it was acquired (Burrows 2006, section 2.4).
type Sequencer struct {
	Lock       string `json:"lock"`
	Shared     bool   `json:"shared,omitempty"`
	Generation uint64 `json:"generation"`
}

// Request is what a client sends.
type Request struct {
	Do      string `json:"do"`
	Session string `json:"session,omitempty"`
	// Epoch is the epoch of the master for which the request is meant.
	Epoch uint64 `json:"epoch,omitempty"`
	Lock  string `json:"lock,omitempty"`
	// Number counts the acquires of a session. The same request, sent again, has the same
	// number.
	Number     uint64        `json:"number,omitempty"`
	Shared     bool          `json:"shared,omitempty"`
	Try        bool          `json:"try,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	Delay      time.Duration `json:"delay_ns,omitempty"`
	Sequencer  *Sequencer    `json:"sequencer,omitempty"`
	// Lost says that the KeepAlive before was not answered. The client may not know of the lease
	// that the master gave then, and would be in jeopardy until the master answers.
	Lost bool `json:"lost,omitempty"`
}

// Reply is what a replica answers.
type Reply struct {
	Error   string `json:"error,omitempty"` // "": done
	Master  string `json:"master,omitempty"`
	Epoch   uint64 `json:"epoch,omitempty"`
	Session string `json:"session,omitempty"`
	// Lease is the length of the session's lease from the answer on. Held is how long the
	// master kept the request.
	Lease      time.Duration `json:"lease_ns,omitempty"`
	Held       time.Duration `json:"held_ns,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	Sequencer  *Sequencer    `json:"sequencer,omitempty"`
	Valid      bool          `json:"valid,omitempty"`
}

// maxFrame is the greatest length of a frame.
const maxFrame = 1 << 16

// Encode returns the frame of a request or a reply: its length in four bytes, the highest
// first, and JSON.
func Encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("chubby: encoding %T: %v", v, err))
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// ReadReply reads the frame of a reply.
func ReadReply(from io.Reader) (r Reply, err error) {
	var head [4]byte
	if _, err = io.ReadFull(from, head[:]); err != nil {
		return r, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return r, fmt.Errorf("chubby: a reply of %d bytes", size)
	}
	text := make([]byte, size)
	if _, err = io.ReadFull(from, text); err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// Refusal is sim.Parts.Refusal. A client takes it for an answer without information.
func (*Replica) Refusal(string) []byte { return Encode(Reply{Error: Refused}) }

// Decode implements sim.Server. The words of a request are its name, its session, its lock
// and its text.
func (*Replica) Decode(text string) (r sim.Request, rest string, err error) {
	if len(text) < 4 {
		return r, text, sim.ErrUnfinished
	}
	size := int(binary.BigEndian.Uint32([]byte(text)))
	if size > maxFrame {
		return r, "", fmt.Errorf("chubby: a request of %d bytes", size)
	}
	if len(text) < 4+size {
		return r, text, sim.ErrUnfinished
	}
	frame, rest := text[4:4+size], text[4+size:]
	q, err := parse(frame)
	if err != nil {
		return r, rest, err
	}
	r = sim.Request{Name: q.Do, Words: []string{q.Do, q.Session, q.Lock, frame}, Abridged: true, Marks: true, Streams: true,
		Blocks: q.Do == KeepAlive || q.Do == Acquire && !q.Try}
	for _, word := range []string{q.Session, q.Lock} {
		if word != "" {
			r.Shown = append(r.Shown, word)
		}
	}
	return r, rest, nil
}

// parse reads the text of a request.
func parse(text string) (q Request, err error) {
	if err = json.Unmarshal([]byte(text), &q); err != nil {
		return q, fmt.Errorf("chubby: a request that is no JSON: %w", err)
	}
	for _, name := range calls {
		if q.Do == name {
			return q, nil
		}
	}
	return q, errors.New("chubby: an unknown call " + q.Do)
}

// answer returns a reply as the world has it.
func answer(r Reply) sim.Reply {
	shown := r.Error
	switch {
	case shown != "" && r.Master != "":
		shown += ", " + r.Master
	case shown != "":
	case r.Session != "":
		shown = r.Session
	case r.Lease > 0:
		shown = "lease of " + r.Lease.String()
	case r.Generation > 0:
		shown = fmt.Sprintf("generation %d", r.Generation)
	case r.Sequencer != nil:
		shown = fmt.Sprintf("generation %d", r.Sequencer.Generation)
	case r.Valid:
		shown = "valid"
	default:
		shown = "done"
	}
	return sim.Reply{Bytes: Encode(r), Shown: strings.ReplaceAll(shown, "_", " ")}
}
