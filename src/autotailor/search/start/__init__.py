"""What the genetic search begins with: SubNets of a beam search, and of descents for many weights of the objectives."""
