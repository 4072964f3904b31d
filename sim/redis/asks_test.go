package redis

import (
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
)

// Goroutines that wake together ask in the order of their words, and the world knows which asked,
// whichever goroutine writes.
func TestThoseWhoAskGoOnInTurn(t *testing.T) {
	for seed := range uint64(20) {
		s := newStage()
		s.Chooser, s.Lineage = sim.NewSeeded(seed), true
		s.Name = func(words []string, by sim.Author) sim.Command {
			return sim.Command{Owners: []string{by.Thread}}
		}
		r := s.does("a/1", func(th *sim.Thread, _ *redis.Client) {
			conn, err := dial(th)
			if err != nil {
				t.Error(err)
				return
			}
			text, done := make(chan string), make(chan bool)
			go func() {
				for cmd := range text {
					_, _ = io.WriteString(conn, cmd)
				}
				close(done)
			}()
			var all sync.WaitGroup
			for _, word := range strings.Fields("d a e c b") {
				all.Go(func() {
					th.Process().Asks([]string{"ECHO", word})
					text <- "*2\r\n$4\r\nECHO\r\n$1\r\n" + word + "\r\n"
				})
			}
			all.Wait()
			text <- ping
			close(text)
			<-done
		}).run(sim.NewHost(t))
		var said []string
		for _, e := range pick(r, ofKind(model.KindSend)) {
			said = append(said, strings.Join(append(slices.Clone(e.Args), e.Owners...), " "))
		}
		equal(t, "sent", strings.Join(said, ", "), "a a/1, b a/1, c a/1, d a/1, e a/1, ")
	}
}
