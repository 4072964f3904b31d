package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Recording has the library's answers to the kept sequences. It is a file in testdata, with a header
// and one sequence per line.
type Recording struct {
	Header
	Sequences []Recorded
}

// Header says where a recording comes from.
type Header struct {
	Format      int    `json:"format"`
	WrittenBy   string `json:"written_by"`
	Redisson    string `json:"redisson"`
	RedisServer string `json:"redis_server"`
	// WatchdogMS is lockWatchdogTimeout. In releases that have this setting it is so long that
	// nothing is renewed within a sequence.
	WatchdogMS int64 `json:"watchdog_ms"`
}

// Recorded is one sequence with its answers.
type Recorded struct {
	Kind  string `json:"kind"`
	Seed  int    `json:"seed"`
	Steps []Step `json:"steps"`
}

// Sequence returns the operations that were asked.
func (r Recorded) Sequence() Sequence {
	seq := Sequence{Kind: r.Kind, Seed: r.Seed}
	for _, s := range r.Steps {
		seq.Ops = append(seq.Ops, s.Op)
	}
	return seq
}

const (
	recordingFormat  = 1
	recordingCommand = "go test -tags interop ./interop -run TestLibraryAnswersAsRecorded -record"
)

func recordingPath(version string) string { return filepath.Join("testdata", version+".jsonl") }

func readRecording(version string) (Recording, error) {
	var r Recording
	text, err := os.ReadFile(recordingPath(version))
	if err != nil {
		return r, fmt.Errorf("no recording of redisson %s; write it with `%s`: %w", version, recordingCommand, err)
	}
	for i, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		if i == 0 {
			err = strictly(line, &r.Header)
		} else {
			r.Sequences = append(r.Sequences, Recorded{})
			err = strictly(line, &r.Sequences[i-1])
		}
		if err != nil {
			return r, fmt.Errorf("%s:%d: %w", recordingPath(version), i+1, err)
		}
	}
	if r.Format != recordingFormat || r.Redisson != version {
		return r, fmt.Errorf("%s is format %d of redisson %s, not %d of %s; write it anew with `%s`", recordingPath(version), r.Format, r.Redisson, recordingFormat, version, recordingCommand)
	}
	return r, nil
}

func strictly(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
