package locktest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/internal/nearest"
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
// a story or a call that does not exist. CAUSE of a drawn failure is not checked: a known defect of any list may be
// the cause.
func checkFingerprint(fingerprint string) error {
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
	var call error
	if len(parts) > 3 && parts[0] != model.JudgeWant { // a want names what its author wanted
		call = knownWord("call", parts[2], fingerprintCalls)
	}
	return errors.Join(knownWord("judge", parts[0], model.Judges), knownWord("class", parts[1], []string{string(judges.ClassBug), string(judges.ClassLimit)}), call)
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
