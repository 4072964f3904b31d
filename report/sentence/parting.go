package sentence

import (
	"fmt"

	"lockstep/internal/foreign"
	"lockstep/linearizability/judges"
	"lockstep/model"
)

// partings are the sentences about the kinds: %[1]s is the thread and %[2]s the lock.
var partings = map[judges.PartingKind]string{
	judges.PartedLate:       "a request of %[1]s came when its call was over, and the server gave %[1]s a hold on %[2]s that no client knows of",
	judges.PartedUnheard:    "the server held %[2]s for %[1]s, which did not believe to hold it",
	judges.PartedClosed:     "the client of %[1]s was closed, and was granted %[2]s all the same",
	judges.PartedExpired:    "the lease of %[1]s on %[2]s ended while it believed to hold it",
	judges.PartedByFault:    "a fault took %[2]s from %[1]s, which believed to hold it",
	judges.PartedBySelf:     "%[1]s believed to hold %[2]s, and a command of the very call that took it had ended the hold",
	judges.PartedByClient:   "%[1]s believed to hold %[2]s, and a command that its client sent outside of calls had ended the hold",
	judges.PartedByUnlock:   "%[1]s believed to hold %[2]s, and an unlock that it had called before had ended the hold",
	judges.PartedByExtend:   "%[1]s believed to hold %[2]s, and a command with which it extended the hold had ended it",
	judges.PartedByAnother:  "%[1]s believed to hold %[2]s, and a command of another thread had ended the hold",
	judges.PartedUnreleased: "an unlock of %[2]s by %[1]s had returned, and the server still held it for %[1]s",
	judges.PartedTold:       "%[1]s was told that its hold on %[2]s is gone, and the server still held it",
	judges.PartedByLoss:     "a message that was to wake %[1]s, which waited for %[2]s, was lost",
}

// Parting writes where server and clients parted.
func Parting(p judges.Parting) string {
	if p.Kind == judges.Agreed {
		return "server and clients agreed about who held the lock"
	}
	text := partings[p.Kind]
	if p.Kind == judges.PartedExpired && p.Unleased {
		text = "the session with which %[1]s held %[2]s ended while it believed to hold it"
	}
	return foreign.Line(model.At(p.AtNs) + ": " + fmt.Sprintf(text, p.Thread, p.Lock))
}
