package subject

// PlantedBug is a bug that was planted in a lock on purpose. A judge must find it.
type PlantedBug struct {
	Name string // of the bug; the lock has PlantedPrefix before it
	Base string // the name of the lock in which it is planted
	What string // what is wrong, in one sentence

	// Judge is the judge that must name it, when a campaign looks for it with these
	// faults and this profile, within so many runs.
	Judge   string
	Faults  string // as for explore, "" for none
	Profile string
	Runs    int
	// Seed is the seed of a campaign whose first run shows it.
	Seed uint64
}
