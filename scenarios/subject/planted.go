package subject

// PlantedBug is a bug that was planted in a lock on purpose. A judge must find it.
type PlantedBug struct {
	Name string // the name of the bug; the name of the lock is PlantedPrefix + Name
	Base string // the name of the lock in which it is planted
	What string // one sentence that says what is wrong

	// Judge is the judge that must report the bug. The campaign that looks for it has
	// the Faults and the Profile, and finds it within Runs runs.
	Judge   string
	Faults  string // in the syntax of explore; "" means no faults
	Profile string
	Runs    int
	// Seed is the seed of a campaign whose first run shows the bug.
	Seed uint64
}
