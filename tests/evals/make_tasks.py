"""Tasks for lm-evaluation-harness, of data that is written here: nothing is fetched from a hub.

    python3 make_tasks.py DIR      writes DIR/*.yaml and DIR/*.jsonl; lm_eval reads them by --include_path DIR

shoal_choice   multiple choice: 334 beginnings of sentences with four endings, one of them right
shoal_rolling  word and byte perplexity of 12 paragraphs
shoal_generate generate_until: 24 short answers, compared word for word
"""
import json
import os
import sys

CAPITALS = """France Paris|Germany Berlin|Italy Rome|Spain Madrid|Portugal Lisbon|Austria Vienna|Greece Athens|Poland Warsaw
Norway Oslo|Sweden Stockholm|Finland Helsinki|Denmark Copenhagen|Ireland Dublin|Belgium Brussels|Hungary Budapest
Russia Moscow|Turkey Ankara|Egypt Cairo|Kenya Nairobi|Japan Tokyo|China Beijing|India Delhi|Iran Tehran|Iraq Baghdad
Cuba Havana|Peru Lima|Chile Santiago|Canada Ottawa|Australia Canberra|Thailand Bangkok|Vietnam Hanoi|Romania Bucharest"""
OPPOSITES = """hot cold|big small|up down|left right|day night|black white|open closed|fast slow|high low|early late
happy sad|rich poor|full empty|light dark|strong weak|young old|wet dry|hard soft|near far|long short|true false|push pull
inside outside|first last|win lose|buy sell|begin end|love hate|war peace|north south|east west|sweet sour"""
PLURALS = """cat cats|dog dogs|house houses|box boxes|child children|man men|woman women|foot feet|tooth teeth|mouse mice
city cities|leaf leaves|wolf wolves|book books|bus buses|baby babies|goose geese|knife knives|potato potatoes|tree trees"""
KINDS = """apple fruit|carrot vegetable|dog animal|oak tree|rose flower|hammer tool|violin instrument|shirt garment
iron metal|tennis sport|France country|blue colour|sparrow bird|salmon fish|ant insect|chair furniture|coffee drink
car vehicle|doctor profession|gold metal|banana fruit|eagle bird|shark fish|piano instrument|football sport|Spain country"""
USES = """You cut bread with a knife|You write a letter with a pen|You open a door with a key|You sweep the floor with a broom
You eat soup with a spoon|You dig a hole with a shovel|You take a picture with a camera|You tell the time with a clock
You see far stars with a telescope|You play music on a piano|You sleep at night in a bed|You keep milk cold in a refrigerator
You hit a nail with a hammer|You dry yourself with a towel|You sew a shirt with a needle|You cross a river on a bridge
You buy things with money|You row a boat with an oar|You light a room with a lamp|You look at yourself in a mirror
You wash your hands with soap|You comb your hair with a comb|You tie your shoes with laces|You read a story in a book"""
ENDINGS = """The sun rises in the east and sets in the west|Water freezes and becomes ice|Bees make honey|Cows give milk
A week has seven days|A year has twelve months|A triangle has three sides|An hour has sixty minutes|Spiders have eight legs
The colour of grass is green|The colour of snow is white|The colour of blood is red|At night you can see the moon
Birds fly with their wings|Fish breathe with their gills|Plants need water and light|The opposite of yes is no
The largest planet is Jupiter|The planet that we live on is Earth|The first man on the Moon was Neil Armstrong
The language that is spoken in Brazil is Portuguese|The author of Hamlet is Shakespeare|The chemical symbol of water is H2O
The freezing point of water in degrees Celsius is zero|The brain is inside the head|The heart pumps blood
A baby cat is called a kitten|A baby dog is called a puppy|Winter is followed by spring|Monday is followed by Tuesday
One plus one equals two|Two times five equals ten|Half of a hundred is fifty|The last letter of the alphabet is Z"""
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()

PARAGRAPHS = [
    "The lamp in the hall stays on until someone turns it off. When nobody has moved for ten minutes, the house turns it off "
    "by itself, and says so only if it is asked.",
    "A river begins as a small spring in the mountains. On its way to the sea it takes in many brooks, and where the land is "
    "flat it becomes wide and slow.",
    "To bake bread you need flour, water, salt and yeast. Mix them, knead the dough for ten minutes, and let it rest in a warm "
    "place until it has doubled in size.",
    "Our neighbour has three dogs. The oldest sleeps most of the day, the second barks at every bicycle, and the youngest eats "
    "whatever falls from the table.",
    "Each processor has a small and fast memory of its own. A program that reads its data in order finds most of them there; one "
    "that jumps around waits for the large memory most of the time.",
    "In autumn the leaves of many trees turn yellow and red. The green dye goes back into the branches, and what remains has been "
    "there all summer, only hidden.",
    "Please read the whole message before you answer. If a question cannot be answered with what you know, say what is missing "
    "and whom to ask.",
    "The pump stopped at four in the morning. Its bearing had been running hot for two days, but nobody had looked at the curve, "
    "because the alarm was set too high.",
    "Er sagte: „Der Zug fährt um zehn nach fünf.“ Niemand glaubte ihm, und so kamen alle zu spät.",
    "def mean(values):\n    if not values:\n        raise ValueError('no values')\n    return sum(values) / len(values)\n",
    "Prices rose by 3.5 % in March, 2.9 % in April and 3.1 % in May; over the whole year they rose by €12 for a basket that had "
    "cost €380.",
    "She closed the book, put it back on the shelf, and looked out of the window. It had begun to snow, and the street was quiet.",
]


def pairs(text):
    return [line.rsplit(" ", 1) for line in text.replace("\n", "|").split("|")]


def rows_of(items, form):
    """Each with its own ending and those of three others, chosen by place; the right one's place goes round."""
    rows = []
    endings = [e for _, e in items]
    for i, (begin, end) in enumerate(items):
        others, step = [], 7
        while len(others) < 3:
            other = endings[(i + step) % len(endings)]
            if other != end and other not in others:
                others.append(other)
            step += 5 if step % 3 else 4
        at = i % 4
        rows.append({"query": form.format(begin), "choices": others[:at] + [end] + others[at:], "answer": at})
    return rows


def choice_rows():
    rows = rows_of(pairs(CAPITALS), "The capital of {} is")
    rows += rows_of(pairs(OPPOSITES), "The opposite of {} is")
    rows += rows_of(pairs(PLURALS), "The plural of the word {} is")
    rows += rows_of(pairs(KINDS), "What kind of thing is this? {}: a kind of")
    rows += rows_of(pairs(USES), "{}")
    rows += rows_of(pairs(ENDINGS), "{}")
    sums = [(f"{NUMBERS[a]} plus {NUMBERS[b]}", NUMBERS[a + b]) for a in range(1, 10) for b in range(1, 10) if a + b <= 12]
    rows += rows_of(sums, "{} equals")
    rows += rows_of([(f"{NUMBERS[a]}, {NUMBERS[a + 1]}, {NUMBERS[a + 2]}", NUMBERS[a + 3]) for a in range(10)], "Count on: {},")
    for form in ("The capital city of {} is called", "Question: What is the capital of {}?\nAnswer:"):
        rows += rows_of(pairs(CAPITALS), form)
    rows += rows_of(pairs(OPPOSITES), "Question: What is the opposite of \"{}\"?\nAnswer:")
    return rows


def generate_rows():
    rows = [{"query": f"Question: What is the capital of {c}?\nAnswer:", "answer": a} for c, a in pairs(CAPITALS)[:12]]
    return rows + [{"query": f"hot: cold\nbig: small\n{a}:", "answer": b} for a, b in pairs(OPPOSITES)[2:14]]


CHOICE = """task: shoal_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
output_type: multiple_choice
test_split: test
doc_to_text: query
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_norm, aggregation: mean, higher_is_better: true}}
metadata: {{version: 1.0}}
"""
ROLLING = """task: shoal_rolling
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
output_type: loglikelihood_rolling
test_split: test
doc_to_text: ""
doc_to_target: text
metric_list:
  - metric: word_perplexity
  - metric: byte_perplexity
  - metric: bits_per_byte
metadata: {{version: 1.0}}
"""
GENERATE = """task: shoal_generate
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
output_type: generate_until
test_split: test
doc_to_text: query
doc_to_target: answer
generation_kwargs: {{until: ["\\n", "."], max_gen_toks: 12, do_sample: false, temperature: 0}}
filter_list:
  - name: first_line
    filter: [{{function: regex, regex_pattern: "(\\\\w+)"}}, {{function: take_first}}]
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true, ignore_case: true}}
metadata: {{version: 1.0}}
"""


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, form, rows in (("choice", CHOICE, choice_rows()), ("rolling", ROLLING, [{"text": p} for p in PARAGRAPHS]),
                             ("generate", GENERATE, generate_rows())):
        data = os.path.join(os.path.abspath(folder), name + ".jsonl")
        with open(data, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
        with open(os.path.join(folder, f"shoal_{name}.yaml"), "w", encoding="utf-8") as f:
            f.write(form.format(data=data))
        print(name, len(rows))


if __name__ == "__main__":
    main(sys.argv[1])
