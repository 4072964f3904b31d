package locktest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	explored "lockstep/explore/failure"
	"lockstep/internal/nearest"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios/story"
)

// The first words of the fingerprints of failures that were not drawn.
const (
	ofStory    = "story"
	ofScenario = "scenario"
	ofInput    = "fuzz"
)

// checkFingerprint returns an error if no failure can have the fingerprint, since it names a judge, a class
// a story or a call that does not exist, or, as the CAUSE of a drawn failure, one that resembles a cause that exists. A
// known defect of any list may be the cause.
func checkFingerprint(fingerprint string) error {
	if name, rest, more := strings.Cut(fingerprint, " "); more {
		return fmt.Errorf("a fingerprint has no spaces; leave %q after %q out", rest, name)
	}
	parts := strings.Split(fingerprint, ".")
	last := parts[len(parts)-1]
	switch {
	case parts[0] == ofStory && len(parts) == 3:
		var names []string
		for _, s := range story.Basic {
			names = append(names, s.Name)
		}
		return errors.Join(knownWord("story", parts[1], names), knownWord("judge", last, model.Judges))
	case parts[0] == ofScenario && len(parts) == 3, parts[0] == ofInput && len(parts) == 2:
		return knownWord("judge", last, model.Judges)
	case len(parts) < 3:
		return errors.New("a fingerprint is JUDGE.bug.CALL.CAUSE, story.NAME.JUDGE or scenario.NAME.JUDGE")
	case slices.Contains([]string{ofStory, ofScenario, ofInput}, parts[0]):
		return fmt.Errorf("a fingerprint that begins with %s has no further part than NAME and JUDGE", parts[0])
	}
	var call, cause error
	if len(parts) > 3 && parts[0] != model.JudgeWant { // a want names what its author wanted
		call = knownWord("call", parts[2], fingerprintCalls)
		if parts[1] == string(judges.ClassBug) {
			cause = checkCause(strings.Join(parts[3:], "."))
		}
	}
	return errors.Join(knownWord("judge", parts[0], model.Judges), knownWord("class", parts[1], []string{string(judges.ClassBug), string(judges.ClassLimit)}), call, cause)
}

// ofMessages matches a cause with faults of messages, or with several faults. Its words are no closed list.
var ofMessages = regexp.MustCompile(`\+|^(?:lost|late|refused)-(?:published-message|(?:request|reply)-of-)`)

// checkCause returns an error if a word resembles a known cause, and is neither one nor a known defect.
func checkCause(word string) error {
	if near := nearest.Near(word, explored.Causes()); near != "" && near != word && known.Find(word) == nil && !ofMessages.MatchString(word) {
		return errors.New(nearest.Unknown(fmt.Sprintf("unknown cause %q", word), near))
	}
	return nil
}

// fingerprintCalls are the words for CALL in the fingerprint of a drawn failure, see failure.OpOf.
var fingerprintCalls = []string{
	string(model.RoleAcquire), string(model.RoleUnlock), string(model.ActExtend), string(model.RoleForceUnlock), string(model.RoleRenew), string(model.RoleLeave), "expiry", "use", "run",
}

// knownWord returns an error if a word is not among the known ones.
func knownWord(what, word string, all []string) error {
	if slices.Contains(all, word) {
		return nil
	}
	return fmt.Errorf("unknown %s %q; %s", what, word, nearest.Known(word, all))
}

// judgeOfFingerprint returns the judge that a fingerprint names; "": it names none.
func judgeOfFingerprint(fingerprint string) string {
	parts := strings.Split(fingerprint, ".")
	for _, judge := range []string{parts[0], parts[len(parts)-1]} {
		if slices.Contains(model.Judges, judge) {
			return judge
		}
	}
	return ""
}
