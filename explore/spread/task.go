package spread

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"lockstep/explore"
	"lockstep/scenarios/subject"
)

// Task is a family of a campaign, and the versions of the program that is to play it.
type Task struct {
	Plan     explore.Plan     `json:"plan"`
	Versions explore.Versions `json:"versions"`
	Family   int              `json:"family"` // its number, from 0
}

// Name returns the name of the task in a queue.
func (t Task) Name() string { return fmt.Sprintf("%s.%d", t.campaign(), t.Family) }

// campaign returns a name for the plan and the versions. Different ones have different names.
func (t Task) campaign() string {
	t.Family = 0
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("spread: a plan that is no JSON: %v", err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// A RefusedError says why this program does not play a task, or cannot open a queue by its url.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// readTask reads a task. It returns a RefusedError for a task that this program cannot or must not
// play.
func readTask(text []byte) (Task, error) {
	var t Task
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("a task that is none: %w", err)
	}
	if d := t.Versions.Difference(explore.CurrentVersions()); d != "" {
		return t, &RefusedError{fmt.Sprintf("the queue has work of another version of this program (%s); start the version that the coordinator runs", d)}
	}
	if _, err := subject.Find(t.Plan.Lock); err != nil {
		return t, &RefusedError{fmt.Sprintf("the queue has work that this program cannot do: %v; start the program that the coordinator runs", err)}
	}
	if !t.Plan.Playable() || t.Family < 0 || t.Family >= t.Plan.Families() {
		return t, fmt.Errorf("family %d of %s is no task", t.Family, t.Plan)
	}
	return t, nil
}

// A resultLine holds the task of a result, if it is the first line, or else a run.
type resultLine struct {
	Task      *Task        `json:"task,omitempty"`
	Run       *explore.Run `json:"run,omitempty"`
	Recording string       `json:"recording,omitempty"` // the recording of Run
}

// writeResult returns the result of a task: all runs of its family.
func writeResult(t Task, runs []explore.Run) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	err := enc.Encode(resultLine{Task: &t})
	for _, r := range runs {
		err = errors.Join(err, enc.Encode(resultLine{Run: &r, Recording: r.Recording}))
	}
	return b.Bytes(), err
}

// readResult reads the result of a task. It returns an error if the result is not the whole
// family, or not of this task.
func readResult(t Task, text []byte) ([]explore.Run, error) {
	lines := json.NewDecoder(bufio.NewReader(bytes.NewReader(text)))
	var head resultLine
	if err := lines.Decode(&head); err != nil {
		return nil, fmt.Errorf("the result of family %d is broken: %w", t.Family, err)
	}
	if head.Task == nil || head.Task.Name() != t.Name() {
		return nil, fmt.Errorf("the result of family %d is of another task", t.Family)
	}
	from, to := t.Plan.Family(t.Family)
	var runs []explore.Run
	for {
		var line resultLine
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the result of family %d is broken: %w", t.Family, err)
		}
		if line.Run == nil || line.Run.Index != from+len(runs) {
			return nil, fmt.Errorf("the result of family %d has not its runs in order", t.Family)
		}
		line.Run.Recording = line.Recording
		runs = append(runs, *line.Run)
	}
	if len(runs) != to-from {
		return nil, fmt.Errorf("the result of family %d has %d runs of %d", t.Family, len(runs), to-from)
	}
	return runs, nil
}
