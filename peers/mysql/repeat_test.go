package mysql_test

import (
	"testing"

	"lockstep/locktest/drawntest"
	"lockstep/peers/mysql"
)

// In this run a try of the holder and a renewal are due at one instant.
func TestADrawnRunRepeats(t *testing.T) { drawntest.Repeats(t, mysql.RowLock, 126) }
