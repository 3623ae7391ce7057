package ring

// storeFence orders earlier stores before later stores (DMB ISHST).
//
//go:noescape
func storeFence()

// loadFence orders earlier loads before later loads and stores (DMB ISHLD).
//
//go:noescape
func loadFence()
