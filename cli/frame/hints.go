package frame

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// ErrNoLock is the error of a command that needs the option --lock.
func ErrNoLock() error { return fmt.Errorf("--lock is missing; %s list names the locks", Simrun()) }

// A realServerError is an error of a command that plays on a real server.
type realServerError struct{ error }

func (e realServerError) Unwrap() error { return e.error }

// OnRealServer returns an error of a command that plays on a real server.
func OnRealServer(err error) error { return realServerError{err} }

// hinted returns the text of the error of a command with its hints, on the same line if the text is one
// line.
func (a *App) hinted(err error, args []string) string {
	text := err.Error()
	for _, hint := range a.hints(err, args) {
		switch {
		case strings.Contains(text, "\n"):
			text += "\n" + hint
		case strings.HasSuffix(text, "?"):
			text += " " + hint
		default:
			text += "; " + hint
		}
	}
	return text
}

// hints returns sentences that name a command that lists the known names, if an error is about an
// unknown name, or a program that knows the name. Each sentence comes once. The packages below do not
// know the name of the program. args are the arguments of the command.
func (a *App) hints(err error, args []string) (all []string) {
	add := func(format string, args ...any) {
		if hint := fmt.Sprintf(format, args...); !slices.Contains(all, hint) {
			all = append(all, hint)
		}
	}
	var real realServerError
	onRealServer := errors.As(err, &real)
	for _, err := range causes(err) {
		switch err := err.(type) {
		case *subject.UnknownError:
			name := cmp.Or(err.Meant, err.Name)
			_, unknown := subject.Find(name)
			i := slices.IndexFunc(a.Others, func(l Other) bool { return l.Name == name })
			switch {
			case i < 0 || unknown == nil: // this program may have a lock of that name, too
				add("%s list names all %d locks", Simrun(), err.Known)
			case onRealServer && a.Others[i].OnlySimulated:
				add("%s, of the program in peers/, is not possible live: no program starts its servers", name)
			default:
				add("the program in peers/ knows %s; in a clone of this project: (cd peers && go run ./%s %s)", name, FolderOf(a.Name), argsInPeers(args, err.Name, name))
			}
		case *scenarios.UnknownError:
			if _, unknown := subject.Find(err.Name); unknown == nil {
				add("%s is a lock; --lock %[1]s chooses it", err.Name)
				continue
			}
			add("%s list names all %d scenarios", Simrun(), err.Known)
		}
	}
	return all
}

// argsInPeers returns the arguments of a command as they are written in the folder peers/: with the lock
// that was meant in place of a misspelt one, and with the paths of files from there.
func argsInPeers(args []string, misspelt, meant string) string {
	lock := regexp.MustCompile(`(^|[=,])` + regexp.QuoteMeta(misspelt) + `($|,)`)
	var there []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && !filepath.IsAbs(arg) {
			arg = filepath.Join("..", arg)
		}
		there = append(there, Quoted(lock.ReplaceAllString(arg, "${1}"+meant+"${2}")))
	}
	return strings.Join(there, " ")
}

// causes returns the innermost errors of an error, which may join several.
func causes(err error) (all []error) {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, causes(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return causes(inner)
		}
	}
	return []error{err}
}
