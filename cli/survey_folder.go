package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/internal/counted"
	"lockstep/scenarios/subject"
)

// surveyTask asks a process for one part of the survey of a lock, or, without a part, for the options that fit
// the time of the lock.
type surveyTask struct {
	Lock, Part string
	Options    survey.Options
	Versions   explore.Versions
}

// surveyAnswer is the answer to a surveyTask.
type surveyAnswer struct {
	Options survey.Options
	Part    survey.Part
}

// surveyingDir is the folder in which a survey keeps the parts that are done.
const surveyingDir = ".surveying"

// surveyKept returns the answer that an interrupted survey kept, or else asks for it.
func surveyKept(stop context.Context, task surveyTask, dir string) (surveyAnswer, error) {
	if dir != "" {
		dir = filepath.Join(dir, surveyingDir)
	}
	return frame.Kept(dir, task.Lock+"."+task.Part, task, func(task surveyTask) (answer surveyAnswer, err error) {
		err = frame.Away(stop, surveyWorker, task, &answer)
		return answer, err
	})
}

// surveyWorker is the command with which simrun starts itself to survey one lock. It is not
// for users.
const surveyWorker = "survey-worker"

// serveSurvey plays one part of the survey of a lock for another process.
func serveSurvey(a *frame.App) (int, error) {
	return frame.ServeTask(a, func(task surveyTask) (any, error) {
		l, err := subject.Find(task.Lock)
		if err != nil {
			return nil, frame.Usage(err)
		}
		var answer surveyAnswer
		if task.Part == "" {
			answer.Options, err = survey.Fit(a.Host, l, task.Options, frame.ProcessorTime)
		} else {
			answer.Part, err = survey.Play(a.Host, l, task.Options, task.Part)
		}
		return answer, err
	})
}

// replaceable returns an error unless a survey of these locks may be written into a folder: it has no survey, or
// one that the new one repeats. Nothing else of the user's may be there under the names of a survey.
func replaceable(dir string, locks []*subject.Subject, o survey.Options) error {
	old, _, err := OpenSurvey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, surveyingDir)); err == nil {
			return nil // a survey began here, and nothing of the user's was in its way
		}
		for _, name := range []string{survey.MarkdownFile, survey.PageFile, survey.RecordingsDir} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return fmt.Errorf("%s would be overwritten, and there is no %s that says that a survey wrote it; name another folder", filepath.Join(dir, name), survey.LocksFile)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	difference := ""
	switch lost := slices.IndexFunc(old.Locks, func(l survey.Lock) bool {
		return !slices.ContainsFunc(locks, func(s *subject.Subject) bool { return s.Name == l.Name })
	}); {
	case lost >= 0:
		difference = "it has " + old.Locks[lost].Name
	case old.Options.Runs != o.Runs:
		difference = fmt.Sprintf("its campaigns have %s, and not %d", counted.Of(old.Options.Runs, "run"), o.Runs)
	case old.Options.Seed != o.Seed:
		difference = fmt.Sprintf("it has seed %d, and not %d", old.Options.Seed, o.Seed)
	default:
		return nil
	}
	return fmt.Errorf("%s holds another survey (%s); name another folder, or remove it", dir, difference)
}

// writeSurvey writes a survey into a folder. Recordings that an earlier survey wrote are
// removed.
func writeSurvey(a *frame.App, dir string, s survey.Survey) error {
	old, _, err := OpenSurvey(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, l := range slices.Concat(old.Locks, s.Locks) {
		if err := os.RemoveAll(filepath.Join(dir, survey.RecordingsDir, filepath.Base(l.Name))); err != nil {
			return err
		}
	}
	for _, l := range s.Locks {
		for name, text := range l.Recordings {
			file := filepath.Join(dir, filepath.FromSlash(survey.RecordingFile(l.Name, name)))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := frame.WriteFile(file, []byte(text)); err != nil {
				return err
			}
		}
	}
	if err := writeSurveyData(dir, s); err != nil {
		return err
	}
	if err := writeSurveyTables(a, dir, s); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, surveyingDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeSurveyData writes the file of a survey that is for programs.
func writeSurveyData(dir string, s survey.Survey) error {
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		return err
	}
	return frame.WriteFile(filepath.Join(dir, survey.LocksFile), b.Bytes())
}

// writeSurveyTables writes the files of a survey that are for people.
func writeSurveyTables(a *frame.App, dir string, s survey.Survey) error {
	s.OnlySimulated = onlySimulated(a, s)
	for _, f := range []struct {
		name  string
		write func(*bytes.Buffer) error
	}{
		{survey.MarkdownFile, func(b *bytes.Buffer) error { return s.WriteMarkdown(b) }},
		{survey.PageFile, func(b *bytes.Buffer) error { return s.WritePage(b) }},
	} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := frame.WriteFile(filepath.Join(dir, f.name), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// onlySimulated returns the locks of a survey whose servers no program starts.
func onlySimulated(a *frame.App, s survey.Survey) (names []string) {
	for _, l := range s.Locks {
		known, err := subject.Find(l.Name)
		if err == nil && known.OnlySimulated || slices.Contains(a.Others, frame.Other{Name: l.Name, OnlySimulated: true}) {
			names = append(names, l.Name)
		}
	}
	return names
}

// OpenSurvey reads the survey of a folder, and the versions of the program that wrote it.
func OpenSurvey(dir string) (survey.Survey, explore.Versions, error) {
	f, err := os.Open(filepath.Join(dir, survey.LocksFile))
	if err != nil {
		return survey.Survey{}, explore.Versions{}, err
	}
	defer func() { _ = f.Close() }()
	s, v, err := survey.Read(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.Name(), err)
	}
	return s, v, err
}

// SurveyLocks returns the locks of a survey without the named ones. The error names a lock that this
// program does not know.
func SurveyLocks(s survey.Survey, without ...string) (locks []*subject.Subject, err error) {
	for _, l := range s.Locks {
		if slices.Contains(without, l.Name) {
			continue
		}
		known, err := subject.Find(l.Name)
		if err != nil {
			return nil, err
		}
		locks = append(locks, known)
	}
	return locks, nil
}

// readRecordings reads the recordings of a lock, which lie beside the survey.
func readRecordings(dir string, l *survey.Lock) (map[string]string, error) {
	all := map[string]string{}
	for _, c := range l.Cells {
		if c.Recording == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(survey.RecordingFile(l.Name, c.Recording))))
		if err != nil {
			return nil, err
		}
		all[c.Recording] = string(text)
	}
	return all, nil
}
